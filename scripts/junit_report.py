"""Reads the reports that test runners leave."""

import xml.etree.ElementTree as xml


def count(report):
    """(passed, failed, skipped) of a JUnit file, whoever wrote it."""
    passed = failed = skipped = 0
    for case in xml.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def failed_cases(report):
    """(class, name) of each test in a JUnit file that failed."""
    return [(case.get("classname", ""), case.get("name")) for case in xml.parse(report).iter("testcase")
            if case.find("failure") is not None or case.find("error") is not None]
