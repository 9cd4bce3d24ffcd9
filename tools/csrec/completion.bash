# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion of csrec for bash. Commands and options are what --help says, so that there is
# nothing to keep in step.

_csrec() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' word i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--device) i=$((i + 1)) ;;
		-*) ;;
		*) command=$word; break ;;
		esac
	done
	if [ -z "$command" ] && [ "$prev" != --device ]; then
		mapfile -t COMPREPLY < <(compgen -W "--json --device --help --version $(csrec --help 2>/dev/null |
			sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')" -- "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "--json --device --help $(csrec "$command" --help 2>/dev/null |
			grep -oE -- '--[a-z][a-z0-9-]*')" -- "$cur")
	elif [ "$command" = model ] && [ "$prev" = model ]; then
		mapfile -t COMPREPLY < <(compgen -W 'show verify extract' -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		compopt -o filenames 2>/dev/null
	fi
}
complete -F _csrec csrec
