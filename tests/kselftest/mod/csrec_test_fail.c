// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test module: while it is loaded the kernel's function "function" is called as ever, and returns
 * "value". For steps of probing that a device cannot make fail.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

static char *function;
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "name of the function");

static int value;
module_param(value, int, 0444);
MODULE_PARM_DESC(value, "what it returns");

static int test_ret(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	regs_set_return_value(regs, value);
	return 0;
}

static struct kretprobe test_probe = {
	.handler = test_ret,
};

static int __init test_init(void)
{
	test_probe.kp.symbol_name = function;
	return register_kretprobe(&test_probe);
}
module_init(test_init);

static void __exit test_exit(void)
{
	unregister_kretprobe(&test_probe);
}
module_exit(test_exit);

MODULE_DESCRIPTION("csrec test: a function of the kernel that fails");
MODULE_LICENSE("GPL");
