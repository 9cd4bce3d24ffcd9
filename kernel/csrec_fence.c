// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fences: 64-bit values kept by the device.
 */
#include <linux/slab.h>

#include "csrec.h"

static void csrec_fence_free(struct csrec_dev *csd, struct csrec_fence *f)
{
	csrec_owner_uncharge(f->obj.ctx->owner, CSREC_QUOTA_FENCES, 1);
	csrec_slot_del(&csd->fences, &f->obj);
	kfree(f);
}

int csrec_ioc_fence_create(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_fence_create *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_cmd cmd = { .opcode = CSREC_OP_FENCE_SET };
	struct csrec_body_fence_set body = {
		.domain = cpu_to_le16(ctx->domain),
		.value = cpu_to_le64(arg->value),
	};
	struct csrec_fence *f;
	int ret;

	if (arg->rsvd)
		return -EINVAL;
	f = kzalloc_obj(*f, GFP_KERNEL_ACCOUNT);
	if (!f)
		return -ENOMEM;
	f->obj.ctx = ctx;
	ret = csrec_enter(ctx);
	if (ret)
		goto err_free;
	ret = csrec_owner_charge(ctx->owner, CSREC_QUOTA_FENCES, 1);
	if (ret)
		goto err_exit;
	ret = csrec_slot_add(&csd->fences, &f->obj, &ctx->fences);
	if (ret)
		goto err_uncharge;
	body.fence_key = cpu_to_le32(f->obj.key);
	memcpy(cmd.body, &body, sizeof(body));
	ret = csrec_admin_exec(csd, &cmd, 1);
	if (!ret) {
		arg->key = f->obj.key;
		csrec_slot_publish(&csd->fences, &f->obj);
	} else if (ret > 0) {
		/* without an answer the slot stays taken as long as the context lives */
		csrec_fence_free(csd, f);
		ret = -EIO;
	}
	csrec_exit(ctx);
	return ret;

err_uncharge:
	csrec_owner_uncharge(ctx->owner, CSREC_QUOTA_FENCES, 1);
err_exit:
	csrec_exit(ctx);
err_free:
	kfree(f);
	return ret;
}

static int csrec_fence_destroy(struct csrec_dev *csd, struct csrec_obj *obj)
{
	int ret;

	/* a transfer may still have to raise it */
	csrec_slot_wait_idle(&csd->fences, obj);
	ret = csrec_admin_key(csd, CSREC_OP_FENCE_INVAL, obj->key, 0);
	if (ret > 0) {
		csrec_set_dead(csd, CSREC_FAILED);
		return -EIO;
	}
	if (ret)
		return ret;
	csrec_fence_free(csd, container_of(obj, struct csrec_fence, obj));
	return 0;
}

int csrec_ioc_fence_destroy(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_fence_op *arg = argp;
	struct csrec_obj *obj;
	int ret;

	if (arg->rsvd || arg->value)
		return -EINVAL;
	ret = csrec_enter(ctx);
	if (ret)
		return ret;
	obj = csrec_slot_close(&ctx->csd->fences, ctx, arg->key);
	ret = obj ? csrec_fence_destroy(ctx->csd, obj) : -ENOENT;
	csrec_exit(ctx);
	return ret;
}

int csrec_ioc_fence_signal(struct csrec_ctx *ctx, void *argp)
{
	struct csrec_fence_op *arg = argp;
	struct csrec_dev *csd = ctx->csd;
	struct csrec_obj *obj;
	int ret;

	if (arg->rsvd)
		return -EINVAL;
	ret = csrec_enter(ctx);
	if (ret)
		return ret;
	obj = csrec_slot_get(&csd->fences, ctx, arg->key);
	if (obj) {
		ret = csrec_admin_key(csd, CSREC_OP_FENCE_SIGNAL, arg->key, arg->value);
		csrec_slot_put(&csd->fences, obj);
	} else {
		ret = -ENOENT;
	}
	csrec_exit(ctx);
	return ret > 0 ? -EIO : ret;
}

void csrec_fences_close(struct csrec_ctx *ctx)
{
	struct csrec_dev *csd = ctx->csd;
	struct csrec_obj *obj;

	while ((obj = csrec_slot_close_first(&csd->fences, &ctx->fences)))
		csrec_fence_destroy(csd, obj);
}

void csrec_fences_teardown(struct csrec_ctx *ctx)
{
	struct csrec_fence *f, *next;

	list_for_each_entry_safe(f, next, &ctx->fences, obj.node)
		csrec_fence_free(ctx->csd, f);
}
