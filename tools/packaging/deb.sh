#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Makes Debian packages of a built tree, inside the lab: tools/packaging/deb.sh [DIR]
# (default build/deb). The same tree gives the same bytes.
#
#   libcsrec1, libcsrec-dev, csrec-tools     for this architecture
#   csrec-dkms                               the driver's source, the udev rule, group csrec
set -euo pipefail
cd "$(dirname "$0")/../.."
top=$PWD here=$top/tools/packaging out=$(realpath -m "${1:-build/deb}")
[ -n "${CSREC_IN_LAB:-}" ] || { echo "deb.sh: runs inside the lab: tools/lab/run $0" >&2; exit 2; }

version=$(dpkg-parsechangelog -l "$here/changelog" -S Version)
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$here/changelog" -S Timestamp)
export SOURCE_DATE_EPOCH
arch=$(dpkg --print-architecture)
libdir=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
maintainer=$(sed -n 's/^ -- \(.*>\)  .*/\1/p' "$here/changelog" | head -n 1)

rm -rf "$out"
mkdir -p "$out"
stage=$out/stage
umask 022

make -s -C userspace/lib install O="$out/lib" DESTDIR="$stage/all" PREFIX=/usr LIBDIR="$libdir"
make -s -C tools/csrec install DESTDIR="$stage/all" PREFIX=/usr

# take PACKAGE PATH...: from what was installed
take() {
	local package=$1 path
	shift
	for path; do
		mkdir -p "$stage/$package/$(dirname "$path")"
		mv "$stage/all/"$path "$stage/$package/$(dirname "$path")/"
	done
}
take libcsrec1 "$libdir/libcsrec.so.*"
take libcsrec-dev "$libdir/libcsrec.so" "$libdir/libcsrec.a" "$libdir/pkgconfig" usr/include
take csrec-tools usr/bin usr/share/man usr/share/bash-completion
so=$(basename "$stage/libcsrec1$libdir"/libcsrec.so.*.*)
chmod 644 "$stage/libcsrec1$libdir/$so"
strip --strip-unneeded "$stage/libcsrec1$libdir/$so" "$stage/csrec-tools/usr/bin/"*
strip --strip-debug --enable-deterministic-archives "$stage/libcsrec-dev$libdir/libcsrec.a"

gzip -9n "$stage/csrec-tools/usr/share/man/man1/csrec.1"

src=$stage/csrec-dkms/usr/src/csrec-$version
mkdir -p "$src/kernel" "$src/uapi/linux"
cp kernel/*.c kernel/*.h kernel/Kbuild "$src/kernel/"
cp uapi/linux/*.h "$src/uapi/linux/"
cp uapi/csrec_layout.h "$src/uapi/"
sed "s/@VERSION@/$version/g" "$here/dkms.conf" >"$src/dkms.conf"
chmod -R u=rwX,go=rX "$src"
install -D -m 644 "$here/60-csrec.rules" "$stage/csrec-dkms/usr/lib/udev/rules.d/60-csrec.rules"

# package NAME ARCH SECTION DEPENDS SUMMARY TEXT: the rest of it, and its .deb
package() {
	local name=$1 dir=$stage/$1 doc=$stage/$1/usr/share/doc/$1
	mkdir -p "$doc" "$dir/DEBIAN"
	gzip -9nc "$here/changelog" >"$doc/changelog.gz"
	sed -e "/@BSD@/{
		r $stage/bsd
		d
		}" "$here/copyright" >"$doc/copyright"
	cat >"$dir/DEBIAN/control" <<-END
		Package: $name
		Source: csrec
		Version: $version
		Architecture: $2
		Maintainer: $maintainer
		Installed-Size: $(du -sk --apparent-size "$dir" | cut -f1)
		Depends: $4
		Section: $3
		Priority: optional
		Description: $5
		$(fmt -w 74 <<<"$6" | sed 's/^/ /')
	END
	[ "$name" != csrec-tools ] || sed -i '/^Section/i Recommends: csrec-dkms' "$dir/DEBIAN/control"
	(cd "$dir" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | LC_ALL=C sort | xargs md5sum) >"$dir/DEBIAN/md5sums"
	chmod 644 "$dir"/DEBIAN/{control,md5sums}
	dpkg-deb --root-owner-group -Zxz --build "$dir" "$out/${name}_${version}_$2.deb" >/dev/null
}
sed -e '/SPDX/d; s/^$/./; s/^/ /' LICENSES/BSD-2-Clause.txt >"$stage/bsd"

# what the programs need of other packages
mkdir -p "$stage/debian"
printf 'Source: csrec\n\nPackage: libcsrec1\nArchitecture: any\n' >"$stage/debian/control"
mkdir -p "$stage/libcsrec1/DEBIAN"
echo "libcsrec 1 libcsrec1 (>= $version)" >"$stage/libcsrec1/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$stage/libcsrec1/DEBIAN/triggers"
depends() { (cd "$stage" && dpkg-shlibdeps -O -Slibcsrec1 "$@" 2>/dev/null | sed 's/^shlibs:Depends=//'); }
libs=$(depends "libcsrec1$libdir/$so")
tools=$(depends csrec-tools/usr/bin/csrec csrec-tools/usr/bin/csrec-model)

mkdir -p "$stage/csrec-dkms/DEBIAN"
cat >"$stage/csrec-dkms/DEBIAN/postinst" <<END
#!/bin/sh
set -e
if [ "\$1" = configure ]; then
	getent group csrec >/dev/null || groupadd --system csrec
	/usr/lib/dkms/common.postinst csrec $version /usr/share/csrec-dkms "" "\$2"
	! [ -S /run/udev/control ] || udevadm control --reload || :
fi
END
cat >"$stage/csrec-dkms/DEBIAN/prerm" <<END
#!/bin/sh
set -e
case \$1 in remove | upgrade | deconfigure)
	[ -z "\$(dkms status -m csrec -v $version)" ] || dkms remove -m csrec -v $version --all ;;
esac
END
cat >"$stage/csrec-dkms/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ "$1" = purge ] && getent group csrec >/dev/null && command -v groupdel >/dev/null; then
	groupdel csrec
fi
END
chmod 755 "$stage"/csrec-dkms/DEBIAN/*

package libcsrec1 "$arch" libs "$libs" "library for computational-storage accelerators" \
	"Submits commands to csrec devices and moves data between memory, drives and devices."
package libcsrec-dev "$arch" libdevel "libcsrec1 (= $version)" "development files of libcsrec1" \
	"Header files, static library and pkg-config file for programs that use csrec devices."
package csrec-tools "$arch" utils "$tools" "command for computational-storage accelerators" \
	"Lists and inspects csrec devices, tests them and scores recommendation models on them."
package csrec-dkms all kernel "dkms (>= 3.0), passwd" "driver source for computational-storage accelerators" \
	"DKMS builds csrec.ko from it for each kernel; members of group csrec may use the devices."
rm -rf "$stage" "${out:?}/lib"
ls -1 "$out"
