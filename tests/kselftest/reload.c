// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work for reload-guest.sh: everything at work for a moment, then killed. Status 0, or not. */
#include "life.h"

int main(void)
{
	pid_t pid = start_busy();
	int status;

	if (pid < 0)
		return 1;
	usleep(5000);
	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status);
}
