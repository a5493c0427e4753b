"""Memory beyond the prompt: what was said, what documents say, which tools fit.

`memories` is what the rest of the service uses; behind it stand an `index` (passages and vectors) and an
`embedding` (sentences to vectors). `documents` and `chunks` make passages of files, `episodes` of what was said.
"""
