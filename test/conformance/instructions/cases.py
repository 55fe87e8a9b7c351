"""What a case is: an instance of library entries in a program of its own."""

import dataclasses

BYTES = {"f64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "e4m3": 1,
         "e5m2": 1, "e8m0": 1, "i8": 1, "ui8": 1}


@dataclasses.dataclass
class Case:
    """entries: the names of the library that the program is there to test."""

    name: str
    entries: tuple
    text: str
    sizes: str = None


def comma(items):
    return ", ".join(map(str, items))


def spans(extents):
    """A whole tensor's window."""
    return comma(f"0:{e}" for e in extents)
