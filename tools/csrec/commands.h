/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subcommands: X(symbol, name, what it does in a line). Those on models need no device
 * and are in a program of their own, csrec-model, which csrec runs for them: so the others
 * load neither a solver nor linear algebra.
 */
#ifndef CSREC_COMMANDS_H
#define CSREC_COMMANDS_H

#define DEVICE_COMMANDS(X) \
	X(cmd_list, "list", "devices, their links, and the NVMe drives they can read") \
	X(cmd_topo, "topo", "tree of switches, drives and devices; what can P2P with what") \
	X(cmd_devices, "devices", "this machine's devices, as csrec plan takes them") \
	X(cmd_info, "info", "what one device can do, and its counters") \
	X(cmd_doctor, "doctor", "what is wrong with a device or its surroundings, and what to do") \
	X(cmd_stat, "stat", "counters of a device, or what they grow by") \
	X(cmd_top, "top", "who uses the devices, and how much") \
	X(cmd_dump, "dump", "all that is known of a device, for a report") \
	X(cmd_reset, "reset", "reset a device") \
	X(cmd_copy, "copy", "move random data with COPY commands and check it") \
	X(cmd_p2p, "p2p", "read an NVMe drive into device memory and check it") \
	X(cmd_infer, "infer", "score a click log with a model") \
	X(cmd_install_cold, "install-cold", "write a model's cold rows to a drive")

#define MODEL_COMMANDS(X) \
	X(cmd_convert, "convert", "make a model container of a trained model's parameters") \
	X(cmd_model, "model", "show, verify, extract from a model container") \
	X(cmd_tt, "tt", "put a table of a model in tensor-train form, and say what that costs") \
	X(cmd_profile, "profile", "count how often a trace wants each row of each table") \
	X(cmd_trace, "trace", "make a trace of accesses") \
	X(cmd_plan, "plan", "decide which rows live where, and prove how good that is") \
	X(cmd_replan, "replan", "plan by new statistics, and say what has to move")

#endif
