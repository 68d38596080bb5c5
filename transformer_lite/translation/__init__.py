"""Translation end to end, English to Japanese: a grammar of our own or real text, vocabularies, training, decoding, scores.

Importing a module of this room loads torch; importing the room alone does not.
"""
