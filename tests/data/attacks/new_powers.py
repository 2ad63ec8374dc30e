# /// script
# dependencies = []
# ///
"""Ask the kernel for what a script has no use for: namespaces, mounts, keys, bpf, io_uring."""

import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
parameters = ctypes.create_string_buffer(256)
BOTH = {
    "io_uring_setup": (425, 425, (8, parameters)),
    "keyctl": (250, 219, (0, -3, 0)),
    "add_key": (248, 217, (b"user", b"a", b"b", 1, -3)),
    "bpf": (321, 280, (0, parameters, 72)),
    "userfaultfd": (323, 282, (0,)),
    "perf_event_open": (298, 241, (parameters, 0, -1, -1, 0)),
    "unshare": (272, 97, (0x10000000,)),
    "setns": (308, 268, (0, 0)),
    "mount": (165, 40, (b"x", b"outputs", b"tmpfs", 0, 0)),
    "open_tree": (428, 428, (-100, b"outputs", 1)),
    "pivot_root": (155, 41, (b".", b".")),
    "chroot": (161, 51, (b".",)),
    "init_module": (175, 105, (parameters, 0, b"")),
    "open_by_handle_at": (304, 265, (-100, parameters, 0)),
    "clock_settime": (227, 112, (0, parameters)),
    "kexec_load": (246, 104, (0, 0, 0, 0)),
}
column = 0 if platform.machine() == "x86_64" else 1
for name, (*numbers, arguments) in BOTH.items():
    if libc.syscall(numbers[column], *arguments) >= 0:
        print("ESCAPED:", name)
status = dict(line.split(":\t") for line in open("/proc/self/status").read().splitlines())
if status["NoNewPrivs"] != "1":
    print("ESCAPED: may gain privileges")
if int(status["CapEff"], 16) or (int(status["CapBnd"], 16) & (1 << 21) and status["Uid"][0] == "0"):
    print("ESCAPED: capabilities", status["CapEff"], status["CapBnd"])
