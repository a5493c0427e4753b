"""Words that carry a full stop without ending a sentence. Lower case, without their last stop."""

from __future__ import annotations


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


NEVER_FINAL = _words(
    "mr mrs ms mx dr prof rev hon gen col capt lt sgt sen rep gov pres messrs vs e.g i.e cf viz approx fig esp",
    # German, French and Spanish.
    "hr fr frl z.b d.h u.a bzw ca nr mme mlle sr sra srta dra",
)
"""Always followed by the rest of their phrase."""

RARELY_FINAL = _words(
    "a.m p.m am pm etc inc ltd co corp llc jr dept ext est min max hrs st ave rd blvd apt mt ft",
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun",
    "u.s u.k u.n e.u u.s.a ph.d b.a m.a d.c p.o usw",
)
"""End a sentence only where the next word plainly begins one."""

SENTENCE_OPENERS = _words(
    "a an the it its it's i i'm i'll i've i'd we we'll we're we've you you'll you're you've your our my he she they",
    "their there here this that these those what when where which who why how is are was were do does did can could",
    "will would shall should may might must have has had if in on at for from to with and but or so please thank",
    "thanks yes no not now then let let's after before once while also however",
)
