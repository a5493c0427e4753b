"""Starts a server's program so that it cannot outlive the service. Run as a script, with nothing but this file.

Linux ends the program with the thread that started it, however that ended; elsewhere the end of its input tells it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the program ``argv[2:]``, unless the process ``argv[1]`` that asked for it is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):
            sys.exit(1)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
