"""Every read and write inside a folder that others can change.

Models, scripts and extensions write where the program reads. A path that was checked by name can
mean another file a moment later, so nothing here goes by name: each operation walks down from the
root over open descriptors, follows no link, takes regular files only, and replaces in one step.

    folder       ConfinedFolder: what the rest of the program uses
    listing      the walk, and the digests of before
    replace      one step from the old file to the new one
    removal      a folder with everything in it
    swap         the renames that Python does not offer
    locks        one writer at a time in each folder
    content      regular files only, and their bytes
    directory    one open folder, and the way down to it
    names        which names are allowed
"""

from reread.files.content import digest, sha256_of
from reread.files.folder import ConfinedFolder
from reread.files.listing import Entry
from reread.files.names import check_name, printable
from reread.files.replace import ANY, Anything, Expect, Written

__all__ = [
    "ANY",
    "Anything",
    "ConfinedFolder",
    "Entry",
    "Expect",
    "Written",
    "check_name",
    "digest",
    "printable",
    "sha256_of",
]
