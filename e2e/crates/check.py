"""Validates RO-Crates with roc-validator, without a network.

Reads lines of a profile and the folder of a crate, with a tab between them, and writes for each crate a line of JSON: its folder, and the
checks that failed, each with its severity, its name, its message and the entity that it is about.
"""

import importlib.resources
import json
import pathlib
import sys
import tempfile

import requests
from requests_cache import CachedResponse
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

# The terms of Workflow Run RO-Crate that crates use, as https://w3id.org/ro/terms/workflow-run/context has them.
RUN_TERMS = "https://w3id.org/ro/terms/workflow-run"
TERMS = ["ContainerImage", "containerImage", "registry", "tag", "sha256"]


def contexts():
    """The JSON-LD contexts that crates name, by their addresses."""
    ro_crate = importlib.resources.files("rocrate").joinpath("data", "ro-crate.jsonld").read_text()
    terms = {"@context": {term: f"{RUN_TERMS}#{term}" for term in TERMS}}
    return {"https://w3id.org/ro/crate/1.1/context": ro_crate, f"{RUN_TERMS}/context": json.dumps(terms)}


def settings(profile, folder, cache):
    return ValidationSettings(
        rocrate_uri=folder,
        profile_identifier=profile,
        requirement_severity=Severity.RECOMMENDED,
        cache_path=cache,
        offline=True,
    )


def fill_cache():
    """Puts the contexts where the validator finds what it has fetched before."""
    session = HttpRequester().session
    for address, text in contexts().items():
        response = CachedResponse(status_code=200, url=address, headers={"Content-Type": "application/ld+json"}, content=text.encode())
        session.cache.save_response(response, session.cache.create_key(requests.Request("GET", address)))


def failures(result):
    for issue in result.get_issues():
        yield {
            "severity": issue.severity.name,
            "check": issue.check.identifier,
            "name": issue.check.name,
            "message": issue.message,
            "entity": str(issue.violatingEntity or ""),
        }


def main():
    with tempfile.TemporaryDirectory() as work:
        cache = pathlib.Path(work) / "cache"
        for line in sys.stdin:
            profile, folder = line.rstrip("\n").split("\t")
            chosen = settings(profile, folder, cache)
            fill_cache()
            print(json.dumps({"crate": folder, "failures": list(failures(services.validate(chosen)))}), flush=True)


main()
