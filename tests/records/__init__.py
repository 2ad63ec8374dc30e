"""Tests of records: crash, resume, audit, replay, report."""
