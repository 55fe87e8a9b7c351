"""Gives a tool every 7th prefix of a file: each must end with status 0 or 1."""
import subprocess
import sys

tool, source, scratch = sys.argv[1:]
text = open(source, "rb").read()
for n in range(0, len(text), 7):
    with open(scratch, "wb") as out:
        out.write(text[:n])
    done = subprocess.run([tool, scratch], capture_output=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{n} bytes: status {done.returncode}\n{done.stderr}")
    if done.returncode == 1 and b"error" not in done.stderr:
        sys.exit(f"{n} bytes: refused without an error")
