"""What the certificate of a C library says, and whether it is that library's.

`exo-translate FILE --to=c -o NAME.c --emit-certificate=NAME.cert.json` writes
both. The code that the library loads stands in NAME.c as an array; its hash must
be the one in the certificate, and so must that of the C file, which checks
arguments, makes tensor maps and launches. Needs neither the tools nor a GPU.
"""
import hashlib
import json
import os
import re

GATE = "ptxas-gate"
MAY_BE_OPEN = {"check-async/sass"}  # needs a disassembler


class NotCertified(Exception):
    """The certificate is missing, of another program, or does not prove it."""


def image_of(source):
    """The bytes that the printed C hands to the driver, of its one image."""
    images = re.findall(r"unsigned char exo_image_\d+\[\] = \{([^}]*)\}",
                        source)
    if len(images) != 1:
        raise NotCertified(f"{len(images)} images in the C file, expected one")
    numbers = images[0].split(",")
    return bytes(int(n) for n in numbers[:-1])  # the last ends it for the driver


def parsed(text, name):
    """The certificate that the text is."""
    try:
        certificate = json.loads(text)
        if {"sha256", "checks", "not_run", "kernels"} <= certificate.keys():
            return certificate
    except (ValueError, AttributeError):
        pass
    raise NotCertified(f"{name}.cert.json is no certificate")


def certified(folder, name):
    """What folder/NAME.cert.json proves of folder/NAME.c, as a line of text."""
    path = os.path.join(folder, name + ".cert.json")
    if not os.path.exists(path):
        raise NotCertified(f"there is no {name}.cert.json beside the C file")
    with open(path, encoding="utf-8") as f:
        certificate = parsed(f.read(), name)
    with open(os.path.join(folder, name + ".c"), "rb") as f:
        source = f.read()
    image = image_of(source.decode("utf-8"))
    digest = hashlib.sha256(image).hexdigest()
    for what, made in (("cubin", digest),
                       ("c", hashlib.sha256(source).hexdigest())):
        said = certificate["sha256"].get(what)
        if said != made:
            raise NotCertified(f"the certificate is of other code: its {what} "
                               f"has sha256 {said}, that of the C file {made}")
    checks, not_run = certificate["checks"], set(certificate["not_run"])
    for check in checks:
        if check["verdict"] != "proved":
            raise NotCertified(f"{check['check']} is {check['verdict']}")
    if GATE not in (check["check"] for check in checks):
        raise NotCertified(f"{GATE} did not run")
    if not_run - MAY_BE_OPEN:
        raise NotCertified("not run: " + ", ".join(sorted(not_run)))
    registers = [k["registers"] for k in certificate["kernels"].values()]
    open_checks = ", ".join(sorted(not_run)) or "none"
    return (f"certified: {len(checks)} findings, all proved; ptxas-clean "
            f"({len(registers)} kernels, at most {max(registers)} registers, no "
            f"spills, no serialised wgmma); not run: {open_checks}; cubin "
            f"sha256 {digest[:16]}")
