/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CSREC_FP_DPI_H
#define CSREC_FP_DPI_H

#ifdef __cplusplus
extern "C" {
#endif

/* fp32 bit patterns in and out; called from the Verilated model */
unsigned int csrec_fp_mul_dpi(unsigned int a, unsigned int b);
unsigned int csrec_fp_add_dpi(unsigned int a, unsigned int b);

#ifdef __cplusplus
}
#endif
#endif /* CSREC_FP_DPI_H */
