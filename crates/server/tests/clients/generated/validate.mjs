// Validates a description of the API, whose file is the argument, with `swagger-parser`.

import SwaggerParser from '@apidevtools/swagger-parser';

// Throws what it finds.
await SwaggerParser.validate(process.argv[2]);
