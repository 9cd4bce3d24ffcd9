// SPDX-License-Identifier: GPL-2.0-only
/*
 * Character device: contexts and the table of ioctls.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "csrec.h"
#include "compat.h"

#define CSREC_MINORS	64

static dev_t csrec_devt;
static DEFINE_IDA(csrec_ida);
static CSREC_CLASS_CONST struct class csrec_class = {
	.name = CSREC_NAME,
	.dev_groups = csrec_groups,
};

/* ---- owners ---- */

/* The owner object of a process, made if it has none yet. NULL: no memory. */
static struct csrec_owner *csrec_owner_get(struct csrec_dev *csd, struct pid *pid)
{
	struct csrec_owner *new = kzalloc_obj(*new, GFP_KERNEL_ACCOUNT), *owner;

	if (!new)
		return NULL;
	kref_init(&new->ref);
	new->csd = csd;
	new->pid = get_pid(pid);

	spin_lock(&csd->owner_lock);
	list_for_each_entry(owner, &csd->owners, node) {
		if (owner->pid == pid) {
			kref_get(&owner->ref);
			spin_unlock(&csd->owner_lock);
			put_pid(new->pid);
			kfree(new);
			return owner;
		}
	}
	get_device(&csd->dev);
	list_add(&new->node, &csd->owners);
	spin_unlock(&csd->owner_lock);
	return new;
}

static void csrec_owner_release(struct kref *ref)
{
	struct csrec_owner *owner = container_of(ref, struct csrec_owner, ref);

	list_del(&owner->node);
}

/* What is charged to an owner holds it. */
void csrec_owner_hold(struct csrec_owner *owner)
{
	kref_get(&owner->ref);
}

void csrec_owner_put(struct csrec_owner *owner)
{
	struct csrec_dev *csd = owner->csd;
	bool last;

	/* csd->owners has no reference: it must not be found with none left */
	spin_lock(&csd->owner_lock);
	last = kref_put(&owner->ref, csrec_owner_release);
	spin_unlock(&csd->owner_lock);
	if (!last)
		return;
	WARN_ON_ONCE(memchr_inv(owner->has, 0, sizeof(owner->has)));
	put_pid(owner->pid);
	kfree(owner);
	put_device(&csd->dev);
}

/**
 * csrec_owner_charge - take something on a process's account
 * @owner: the process
 * @what: of what
 * @n: how many, or bytes
 *
 * Return: 0; -EDQUOT it may not have that much.
 */
int csrec_owner_charge(struct csrec_owner *owner, enum csrec_quota what, u64 n)
{
	struct csrec_dev *csd = owner->csd;
	int ret = 0;
	u64 most;

	spin_lock(&csd->owner_lock);
	most = csd->quota[what] ?: U64_MAX;
	/* a limit lowered below what it has is no matter until it wants more */
	if (owner->has[what] > most || n > most - owner->has[what])
		ret = -EDQUOT;
	else
		owner->has[what] += n;
	spin_unlock(&csd->owner_lock);
	return ret;
}

void csrec_owner_uncharge(struct csrec_owner *owner, enum csrec_quota what, u64 n)
{
	spin_lock(&owner->csd->owner_lock);
	owner->has[what] -= n;
	spin_unlock(&owner->csd->owner_lock);
}

/* ---- contexts ---- */

/* Everything goes; the device is stopped and nobody else uses the context. */
void csrec_ctx_teardown(struct csrec_ctx *ctx)
{
	csrec_queues_teardown(ctx);
	csrec_regions_teardown(ctx);
	csrec_fences_teardown(ctx);
}

/**
 * csrec_enter - begin to work with the device
 * @ctx: context
 *
 * Until csrec_exit() the device is not stopped. Waits for the device in between must end
 * when csrec_ctx_dead(); nothing else may be waited for that can take for ever, and no
 * memory of a process be touched.
 *
 * Return: 0; or what the ioctl returns, -ENODEV or -EIO, and csrec_exit() must not be called.
 */
int csrec_enter(struct csrec_ctx *ctx)
{
	int ret;

	down_read(&ctx->csd->reset_lock);
	ret = csrec_ctx_dead(ctx);
	if (ret)
		up_read(&ctx->csd->reset_lock);
	return ret;
}

/* The same, or -EAGAIN instead of waiting for whoever stops the device. */
int csrec_enter_nowait(struct csrec_ctx *ctx)
{
	int ret;

	if (!down_read_trylock(&ctx->csd->reset_lock))
		return csrec_ctx_dead(ctx) ?: -EAGAIN;
	ret = csrec_ctx_dead(ctx);
	if (ret)
		up_read(&ctx->csd->reset_lock);
	return ret;
}

void csrec_exit(struct csrec_ctx *ctx)
{
	up_read(&ctx->csd->reset_lock);
}

static bool csrec_ctx_empty(struct csrec_ctx *ctx)
{
	return !ctx->nr_queues && list_empty(&ctx->regions) &&
	       list_empty(&ctx->fences);
}

static void csrec_ctx_unlist(struct csrec_ctx *ctx)
{
	spin_lock(&ctx->csd->ctx_lock);
	list_del(&ctx->node);
	spin_unlock(&ctx->csd->ctx_lock);
}

static void csrec_ctx_free(struct kref *ref)
{
	struct csrec_ctx *ctx = container_of(ref, struct csrec_ctx, ref);

	put_device(&ctx->csd->dev);
	kfree(ctx);
}

void csrec_ctx_put(struct csrec_ctx *ctx)
{
	kref_put(&ctx->ref, csrec_ctx_free);
}

static int csrec_open(struct inode *inode, struct file *file)
{
	struct csrec_dev *csd = container_of(inode->i_cdev, struct csrec_dev, cdev);
	struct csrec_ctx *ctx;
	int ret;

	ctx = kzalloc_obj(*ctx, GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	kref_init(&ctx->ref);
	ctx->csd = csd;
	ctx->pid = get_pid(task_tgid(current));
	get_task_comm(ctx->comm, current);
	init_waitqueue_head(&ctx->waitq);
	INIT_LIST_HEAD(&ctx->regions);
	INIT_LIST_HEAD(&ctx->fences);
	ret = -ENOMEM;
	ctx->owner = csrec_owner_get(csd, ctx->pid);
	if (!ctx->owner)
		goto err_pid;
	ret = csrec_maps_init(ctx);
	if (ret)
		goto err_owner;

	down_read(&csd->reset_lock);
	ret = csrec_dead(csd);
	if (ret)
		goto err;
	/* the hardware's name for this context; 0 is the driver itself */
	ret = ida_alloc_range(&csd->domains, 1, U16_MAX, GFP_KERNEL);
	if (ret < 0)
		goto err;
	ctx->domain = ret;
	ctx->reset_gen = csd->reset_gen;
	spin_lock(&csd->ctx_lock);
	list_add_tail(&ctx->node, &csd->ctxs);
	spin_unlock(&csd->ctx_lock);
	up_read(&csd->reset_lock);

	get_device(&csd->dev);
	file->private_data = ctx;
	file->f_mapping = ctx->inode->i_mapping;
	return nonseekable_open(inode, file);

err:
	up_read(&csd->reset_lock);
	csrec_maps_exit(ctx);
err_owner:
	csrec_owner_put(ctx->owner);
err_pid:
	put_pid(ctx->pid);
	kfree(ctx);
	return ret;
}

static int csrec_release(struct inode *inode, struct file *file)
{
	struct csrec_ctx *ctx = file->private_data;
	struct csrec_dev *csd = ctx->csd;
	bool empty;

	down_read(&csd->reset_lock);
	if (!csrec_ctx_dead(ctx)) {
		/* queues first: no new command then names a region */
		csrec_queues_close(ctx);
		csrec_regions_close(ctx);
		csrec_fences_close(ctx);
	}
	empty = csrec_ctx_empty(ctx);
	up_read(&csd->reset_lock);

	/* the device is dead and did not confirm; a reset, if there is one, does the same */
	if (!empty && csrec_lock_dead(csd)) {
		if (!csrec_ctx_empty(ctx)) {
			csrec_hw_stop(csd);
			csrec_ctx_teardown(ctx);
		}
		up_write(&csd->reset_lock);
	}
	down_read(&csd->reset_lock);
	WARN_ON_ONCE(!csrec_ctx_empty(ctx));
	csrec_ctx_unlist(ctx);
	up_read(&csd->reset_lock);

	ida_free(&csd->domains, ctx->domain);
	csrec_maps_exit(ctx);
	csrec_owner_put(ctx->owner);
	put_pid(ctx->pid);
	csrec_ctx_put(ctx);
	return 0;
}

static __poll_t csrec_poll(struct file *file, poll_table *wait)
{
	struct csrec_ctx *ctx = file->private_data;

	poll_wait(file, &ctx->waitq, wait);
	/* not csrec_enter(): a reset under way must not hold up an event loop */
	if (csrec_ctx_dead(ctx))
		return EPOLLHUP | EPOLLERR;
	return csrec_queues_poll(ctx);
}

/* ---- ioctls that belong to no other file ---- */

u32 csrec_features(const struct csrec_dev *csd)
{
	u32 features = 0;

	if (csd->p2pdma)
		features |= CSREC_FEATURE_P2PDMA | CSREC_FEATURE_MEM_MAP;
	if (csd->queue_map)
		features |= CSREC_FEATURE_QUEUE_MAP;
	if (csd->hw_minor >= 1)
		features |= CSREC_FEATURE_COALESCE;
#ifdef CSREC_URING
	features |= CSREC_FEATURE_URING;
#endif
	return features;
}

static int csrec_ioc_get_info(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_info *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	int ret = csrec_enter(ctx);

	if (ret)
		return ret;
	arg->uapi_major = CSREC_UAPI_MAJOR;
	arg->uapi_minor = CSREC_UAPI_MINOR;
	arg->hw_major = csd->hw_major;
	arg->hw_minor = csd->hw_minor;
	arg->cap_queue = csd->cap_queue;
	arg->cap_table = csd->cap_table;
	arg->cap_dram = csd->cap_dram;
	arg->cap_onchip = csd->cap_onchip;
	arg->cap_engine = csd->cap_engine;
	arg->cap_limit = csd->cap_limit;
	arg->features = csrec_features(csd);
	arg->pci_domain = pci_domain_nr(csd->pdev->bus);
	arg->pci_bus = csd->pdev->bus->number;
	arg->pci_devfn = csd->pdev->devfn;
	arg->irq_vectors = csd->nr_vectors;
	arg->numa_node = dev_to_node(&csd->pdev->dev);
	csrec_dram_reap(csd);
	arg->dram_free = csrec_dram_free_bytes(csd);
	arg->onchip_free = csrec_onchip_free_bytes(csd);
	spin_lock(&csd->owner_lock);
	arg->quota_dram = csd->quota[CSREC_QUOTA_DRAM] ?: csd->dram_size;
	arg->quota_queues = csd->quota[CSREC_QUOTA_QUEUES] ?: csd->nr_ioq;
	arg->owned_dram = ctx->owner->has[CSREC_QUOTA_DRAM];
	arg->owned_queues = ctx->owner->has[CSREC_QUOTA_QUEUES];
	spin_unlock(&csd->owner_lock);
	csrec_exit(ctx);
	return 0;
}

static int csrec_ioc_get_stats(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_stats *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	int ret;

	ret = csrec_enter(ctx);
	if (ret)
		return ret;
	arg->doorbells = atomic64_read(&csd->doorbells);
	arg->interrupts = atomic64_read(&csd->interrupts);
	arg->commands = atomic64_read(&csd->commands);
	arg->p2p_bytes = atomic64_read(&csd->p2p_bytes);
	arg->bounce_bytes = atomic64_read(&csd->bounce_bytes);
	arg->pinned_bytes = atomic64_read(&csd->pinned_bytes);
	arg->ctx_p2p_bytes = atomic64_read(&ctx->p2p_bytes);
	arg->ctx_bounce_bytes = atomic64_read(&ctx->bounce_bytes);
	arg->queue_resets = atomic64_read(&csd->queue_resets);
	arg->device_resets = atomic64_read(&csd->device_resets);
	csrec_stats_counters(csd, arg);
	/* were these counters, or what a bus says on which nobody answers? */
	ret = csrec_hw_alive(csd);
	csrec_exit(ctx);
	return ret;
}

/* ---- dispatch ---- */

/* Every argument begins like this. */
struct csrec_arg_head {
	u32 size;
	u32 flags;
};

union csrec_arg {
	struct csrec_arg_head head;
	struct csrec_info info;
	struct csrec_queue_create queue_create;
	struct csrec_queue_reset queue_reset;
	struct csrec_queue_eventfd queue_eventfd;
	struct csrec_queue_destroy queue_destroy;
	struct csrec_mem_register mem_register;
	struct csrec_mem_alloc mem_alloc;
	struct csrec_mem_free mem_free;
	struct csrec_fence_create fence_create;
	struct csrec_fence_op fence_op;
	struct csrec_submit submit;
	struct csrec_wait wait;
	struct csrec_p2p_read p2p_read;
	struct csrec_stats stats;
	struct csrec_export_call mem_export;
	struct csrec_mem_import mem_import;
};

struct csrec_ioctl {
	u32 size;		/* of the structure as this driver knows it */
	u32 min_size;		/* of its first version */
	u32 flags;		/* known flags */
	int (*fn)(struct csrec_ctx *ctx, void *arg);
};

/* @last is the last member of the structure's first version */
#define CSREC_IOCTL(nr, name, type, last, known_flags)				\
	[_IOC_NR(CSREC_IOC_##nr)] = {						\
		.size = sizeof(struct type),					\
		.min_size = offsetofend(struct type, last),			\
		.flags = known_flags,						\
		.fn = csrec_ioc_##name,						\
	}

static const struct csrec_ioctl csrec_ioctls[] = {
	CSREC_IOCTL(GET_INFO, get_info, csrec_info, onchip_free, 0),
	CSREC_IOCTL(QUEUE_CREATE, queue_create, csrec_queue_create, queue_id,
		    CSREC_QUEUE_F_MAP | CSREC_QUEUE_F_NOIRQ),
	CSREC_IOCTL(QUEUE_RESET, queue_reset, csrec_queue_reset, rsvd, 0),
	CSREC_IOCTL(QUEUE_EVENTFD, queue_eventfd, csrec_queue_eventfd, fd, 0),
	CSREC_IOCTL(QUEUE_DESTROY, queue_destroy, csrec_queue_destroy, rsvd, 0),
	CSREC_IOCTL(MEM_REGISTER, mem_register, csrec_mem_register, key, 0),
	CSREC_IOCTL(MEM_ALLOC, mem_alloc, csrec_mem_alloc, key, 0),
	CSREC_IOCTL(MEM_FREE, mem_free, csrec_mem_free, rsvd, 0),
	CSREC_IOCTL(FENCE_CREATE, fence_create, csrec_fence_create, rsvd, 0),
	CSREC_IOCTL(FENCE_DESTROY, fence_destroy, csrec_fence_op, rsvd, 0),
	CSREC_IOCTL(FENCE_SIGNAL, fence_signal, csrec_fence_op, rsvd, 0),
	CSREC_IOCTL(SUBMIT, submit, csrec_submit, rsvd, 0),
	CSREC_IOCTL(WAIT, wait, csrec_wait, cqes, CSREC_WAIT_F_DEADLINE),
	CSREC_IOCTL(P2P_READ, p2p_read, csrec_p2p_read, bounce_bytes,
		    CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE),
	CSREC_IOCTL(P2P_WRITE, p2p_write, csrec_p2p_read, bounce_bytes,
		    CSREC_P2P_F_ONLY | CSREC_P2P_F_BOUNCE),
	CSREC_IOCTL(MEM_EXPORT, mem_export, csrec_mem_export, rsvd, 0),
	CSREC_IOCTL(MEM_IMPORT, mem_import, csrec_mem_import, rsvd, 0),
	CSREC_IOCTL(GET_STATS, get_stats, csrec_stats, counters, 0),
};

/* The argument of an ioctl, read and checked as far as all have that in common. */
static const struct csrec_ioctl *csrec_arg_read(union csrec_arg *arg, unsigned int cmd,
						void __user *uarg)
{
	unsigned int nr = _IOC_NR(cmd);
	const struct csrec_ioctl *op;
	u32 size;
	int ret;

	if (nr >= ARRAY_SIZE(csrec_ioctls) || cmd != _IO(CSREC_IOC_MAGIC, nr))
		return ERR_PTR(-ENOTTY);
	op = &csrec_ioctls[array_index_nospec(nr, ARRAY_SIZE(csrec_ioctls))];
	if (!op->fn)
		return ERR_PTR(-ENOTTY);

	if (get_user(size, (u32 __user *)uarg))
		return ERR_PTR(-EFAULT);
	if (size < op->min_size)
		return ERR_PTR(-EINVAL);
	/* what is unknown is looked at byte by byte: not for ever */
	if (size > PAGE_SIZE)
		return ERR_PTR(-E2BIG);
	memset(arg, 0, sizeof(*arg));
	ret = copy_struct_from_user(arg, op->size, uarg, size);
	if (ret)
		return ERR_PTR(ret);
	/* what was checked is what counts, should the caller have changed it meanwhile */
	arg->head.size = size;
	if (arg->head.flags & ~op->flags)
		return ERR_PTR(-EINVAL);
	return op;
}

static long csrec_ioctl(struct file *file, unsigned int cmd, unsigned long argp)
{
	struct csrec_ctx *ctx = file->private_data;
	void __user *uarg = (void __user *)argp;
	const struct csrec_ioctl *op;
	union csrec_arg arg;
	int ret;

	op = csrec_arg_read(&arg, cmd, uarg);
	if (IS_ERR(op))
		return PTR_ERR(op);

	/* comes before what is wrong with the arguments; op->fn() looks again */
	ret = csrec_ctx_dead(ctx);
	if (!ret)
		ret = op->fn(ctx, &arg);
	if (ret)
		return ret;

	/* on a failure here the caller has lost what it got; it all goes at close */
	if (copy_to_user(uarg, &arg, min(arg.head.size, op->size)))
		ret = -EFAULT;
	/* but for a descriptor, which anybody in the process could use and close by now */
	if (op->fn == csrec_ioc_mem_export)
		csrec_export_end(&arg.mem_export, ret);
	return ret;
}

#ifdef CSREC_URING
static int csrec_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct csrec_ctx *ctx = cmd->file->private_data;
	const u64 *sqe_cmd = (const u64 *)cmd->sqe->cmd;
	const struct csrec_ioctl *op;
	union csrec_arg arg;
	void __user *uarg;
	int ret;

	if (issue_flags & IO_URING_F_CANCEL) {
		csrec_p2p_uring_cancel(cmd, issue_flags);
		return 0;
	}
	if (cmd->cmd_op != CSREC_IOC_P2P_READ && cmd->cmd_op != CSREC_IOC_P2P_WRITE)
		return -ENOTTY;
	uarg = u64_to_user_ptr(READ_ONCE(sqe_cmd[0]));
	if (READ_ONCE(sqe_cmd[1]) || cmd->flags & IORING_URING_CMD_MASK)
		return -EINVAL;
	/* a command of 80 bytes is as good as one of 16, if there is nothing else in it */
	if (issue_flags & IO_URING_F_SQE128 && memchr_inv(&sqe_cmd[2], 0, 64))
		return -EINVAL;
	op = csrec_arg_read(&arg, cmd->cmd_op, uarg);
	if (IS_ERR(op))
		return PTR_ERR(op);
	ret = csrec_ctx_dead(ctx);
	if (ret)
		return ret;
	return csrec_p2p_uring(ctx, &arg.p2p_read, cmd->cmd_op == CSREC_IOC_P2P_WRITE, cmd, uarg,
			       issue_flags);
}
#endif

static const struct file_operations csrec_fops = {
	.owner = THIS_MODULE,
	.open = csrec_open,
	.release = csrec_release,
	.unlocked_ioctl = csrec_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
#ifdef CSREC_URING
	.uring_cmd = csrec_uring_cmd,
#endif
	.poll = csrec_poll,
	.mmap = csrec_mmap,
};

/* ---- the device node ---- */

static void csrec_dev_release(struct device *dev)
{
	struct csrec_dev *csd = container_of(dev, struct csrec_dev, dev);

	if (csd->id >= 0)
		ida_free(&csrec_ida, csd->id);
	cancel_work_sync(&csd->zap_work);
	ida_destroy(&csd->domains);
	kfree(csd->queues);
	mutex_destroy(&csd->queue_lock);
	mutex_destroy(&csd->counters.lock);
	kfree(csd);
}

/* On failure csd->id is a negative errno. */
void csrec_cdev_init(struct csrec_dev *csd)
{
	struct device *dev = &csd->dev;
	int ret;

	device_initialize(dev);
	dev->class = &csrec_class;
	dev->parent = &csd->pdev->dev;
	dev->release = csrec_dev_release;
	csd->id = ida_alloc_max(&csrec_ida, CSREC_MINORS - 1, GFP_KERNEL);
	if (csd->id < 0)
		return;
	dev->devt = MKDEV(MAJOR(csrec_devt), csd->id);
	ret = dev_set_name(dev, CSREC_NAME "%d", csd->id);
	if (ret) {
		ida_free(&csrec_ida, csd->id);
		csd->id = ret;
		return;
	}
	cdev_init(&csd->cdev, &csrec_fops);
	csd->cdev.owner = THIS_MODULE;
}

int csrec_cdev_add(struct csrec_dev *csd)
{
	int ret = cdev_device_add(&csd->cdev, &csd->dev);

	if (!ret)
		csrec_debugfs_add(csd);
	return ret;
}

/* Its number is free again at once, though files may stay open. */
void csrec_cdev_del(struct csrec_dev *csd)
{
	csrec_debugfs_del(csd);
	cdev_device_del(&csd->cdev, &csd->dev);
	ida_free(&csrec_ida, csd->id);
	csd->id = -ENODEV;
}

int csrec_main_init(void)
{
	int ret = csrec_mmap_init();

	if (ret)
		return ret;
	ret = alloc_chrdev_region(&csrec_devt, 0, CSREC_MINORS, CSREC_NAME);
	if (ret)
		goto err_mmap;
	ret = class_register(&csrec_class);
	if (ret)
		goto err_chrdev;
	csrec_debugfs_init();
	return 0;

err_chrdev:
	unregister_chrdev_region(csrec_devt, CSREC_MINORS);
err_mmap:
	csrec_mmap_exit();
	return ret;
}

void csrec_main_exit(void)
{
	csrec_debugfs_exit();
	class_unregister(&csrec_class);
	unregister_chrdev_region(csrec_devt, CSREC_MINORS);
	csrec_mmap_exit();
	ida_destroy(&csrec_ida);
}
