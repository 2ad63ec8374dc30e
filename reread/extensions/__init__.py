"""Packages of tools, rails and skills that a run loads, each in a fenced process of its own.

loading      Extensions: load, unload and reload while a program runs
verified     which packages, by digest, have passed verification
package      the files of a package: its digest, and a copy that cannot change meanwhile
manifest     harness_config.yaml: the strict subset that is accepted
_process     the program's side of a package's process
_serve       the package's side; what it imports is in `api` and nothing else of ours
api          what an author imports
"""
