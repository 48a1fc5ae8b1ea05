"""Idioms that neither the code nor the pages use, and the standard term for each."""

import re

BRITISH = r"\w*(labell(ed|ing)(?!by)|colour|neighbour)\w*|\b(centred?|grey)\b"
# Idiom -> what to write instead. `there is no` is plain English, and so is `no longer`.
IDIOMS = {
    r"\btold\b|\btells?\b|\btelling\b": "detected, reports, contains, states, returns",
    r"\bsa(ys|id)\b|\bsay\b": "is logged, reports, states",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b|\bonce more\b": "again, re-create, rewrite",
    r"\bbeside\b": "compared with, next to",
    r"(?<!there )(?<!There )\b(is|are|was|were) (no|none)\b(?! longer| more\b)|\bholds? no\b": "is not a, contains no",
    r"\blies\b|\b(?<!may )lie\b|\blay\b|\bstands?\b(?! out| for| in)": "is in, is stored in, is located at",
    r"\bin force\b": "current, active, the baseline model",
    r"\bwhoever\b|\bwhatever\b": "name the thing",
    r"\bstranger'?s?\b": "untrusted",
    r"\bas far as it goes\b|\bat a time\b|\bin a row\b": "name the number, concurrently, consecutively",
    r"\bby (hand|itself|themselves)\b|\bof (its|their|his) own\b": "manually, automatically, separate",
    r"\bhand(s|ed|ing)? (out|on|over)\b|\btak(es|en|ing) up\b|\btake up\b": "returns, passes, resumes",
    r"\bputs? away\b|\bclears? (up|away)\b": "stores, deletes, cleans up",
    r"\bshort of\b": "below",
    BRITISH: "the spelling of TensorFlow: labeled, color, center, neighbor, gray",
}
RULES = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in IDIOMS.items()]
