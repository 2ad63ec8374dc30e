"""A recorded run again: held against the disk, carried elsewhere, run again, or gone on with."""
