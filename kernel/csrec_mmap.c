// SPDX-License-Identifier: GPL-2.0-only
/*
 * What processes map: which offset is what, and how it is taken from them again.
 *
 * Every context has an inode of its own on a file system of ours, and its file's mappings
 * hang there, so that they can be found and zapped without touching another context's.
 *
 * Page table entries are made by fault handlers only, and under ctx->map_lock after a look at
 * csrec_map_live(), unless they may as well stay: a mapping that mmap() is about to set
 * up is not yet to be found by who zaps.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "csrec.h"

#define CSREC_FS_MAGIC	0x43535243

static struct vfsmount *csrec_mnt;

static int csrec_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, CSREC_FS_MAGIC) ? 0 : -ENOMEM;
}

/*
 * Without an owner: our own mount must not keep the module from being unloaded. Whoever uses it
 * has a file open, which does.
 */
static struct file_system_type csrec_fs = {
	.name = CSREC_NAME,
	.init_fs_context = csrec_fs_init,
	.kill_sb = kill_anon_super,
};

int csrec_mmap_init(void)
{
	csrec_mnt = kern_mount(&csrec_fs);
	return PTR_ERR_OR_ZERO(csrec_mnt);
}

void csrec_mmap_exit(void)
{
	kern_unmount(csrec_mnt);
}

int csrec_maps_init(struct csrec_ctx *ctx)
{
	struct inode *inode = alloc_anon_inode(csrec_mnt->mnt_sb);

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	ctx->inode = inode;
	mutex_init(&ctx->map_lock);
	INIT_LIST_HEAD(&ctx->maps);
	/* 0 says that there is nothing to map */
	ctx->map_next = 1;
	return 0;
}

/* The last reference to the file is going, and so there are no mappings. */
void csrec_maps_exit(struct csrec_ctx *ctx)
{
	mutex_destroy(&ctx->map_lock);
	iput(ctx->inode);
}

static void csrec_zap(struct csrec_ctx *ctx, unsigned long pgoff, unsigned long npages)
{
	unmap_mapping_range(ctx->inode->i_mapping, (loff_t)pgoff << PAGE_SHIFT,
			    (loff_t)npages << PAGE_SHIFT, 1);
}

/* The context is dead: no mapping reaches the device any more, nor will. */
void csrec_maps_zap(struct csrec_ctx *ctx)
{
	/* who is in a fault handler and has found the context alive comes first */
	mutex_lock(&ctx->map_lock);
	mutex_unlock(&ctx->map_lock);
	csrec_zap(ctx, 0, 0);
}

/**
 * csrec_map_add - make something known to mmap()
 * @ctx: context
 * @map: what; @map->ops is set
 * @npages: how long it is; it can only be mapped as a whole
 *
 * Return: 0, with @map->pgoff set to an offset that this context has never seen before;
 * -ENOSPC there is none left.
 */
int csrec_map_add(struct csrec_ctx *ctx, struct csrec_map *map, unsigned long npages)
{
	/* what fits into a loff_t; in 32-bit programs the number of a page has 32 bits */
	unsigned long end = in_compat_syscall() ? U32_MAX : LLONG_MAX >> PAGE_SHIFT;
	int ret = -ENOSPC;

	mutex_lock(&ctx->map_lock);
	if (ctx->map_next <= end && npages <= end - ctx->map_next) {
		map->pgoff = ctx->map_next;
		map->npages = npages;
		ctx->map_next += npages;
		list_add_tail(&map->node, &ctx->maps);
		ret = 0;
	}
	mutex_unlock(&ctx->map_lock);
	return ret;
}

/* It is not found any more, and does not last in page tables; its VMAs may. */
void csrec_map_del(struct csrec_ctx *ctx, struct csrec_map *map)
{
	mutex_lock(&ctx->map_lock);
	list_del_init(&map->node);
	mutex_unlock(&ctx->map_lock);
	csrec_zap(ctx, map->pgoff, map->npages);
}

/* For fault handlers: may a page table entry be made that reaches the device? */
bool csrec_map_live(struct csrec_ctx *ctx, const struct csrec_map *map)
{
	lockdep_assert_held(&ctx->map_lock);
	return !list_empty(&map->node) && !csrec_ctx_dead(ctx);
}

int csrec_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct csrec_ctx *ctx = file->private_data;
	struct csrec_map *map;
	int ret;

	ret = csrec_ctx_dead(ctx);
	if (ret)
		return ret;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	/* nor later; and by nobody but this process */
	vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);

	ret = -EINVAL;
	mutex_lock(&ctx->map_lock);
	list_for_each_entry(map, &ctx->maps, node) {
		if (map->pgoff == vma->vm_pgoff && map->npages == vma_pages(vma)) {
			ret = map->ops->mmap(map, vma);
			break;
		}
	}
	mutex_unlock(&ctx->map_lock);
	return ret;
}

/* For vm_operations_struct: mappings come and go as a whole. */
int csrec_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}
