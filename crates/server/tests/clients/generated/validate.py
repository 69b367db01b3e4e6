"""Validates a description of the API, whose file is the argument, with `openapi-spec-validator`."""

import json
import sys
from pathlib import Path

from openapi_spec_validator import OpenAPIV31SpecValidator

description = json.loads(Path(sys.argv[1]).read_text())
for error in OpenAPIV31SpecValidator(description).iter_errors():
    print("/".join(str(part) for part in error.absolute_path), error.message)
