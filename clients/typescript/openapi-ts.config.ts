import { defineConfig } from '@hey-api/openapi-ts';

const VERSION_HEADER = '#/components/parameters/ClientVersion';

export default defineConfig({
  input: '../../spec/openapi.yaml',
  output: { path: 'src/generated', importFileExtension: '.js' },
  parser: {
    patch: {
      // `connect` sends the version with each request.
      input: (document) => {
        for (const operation of Object.values(document.paths ?? {}).flatMap((item) => Object.values(item))) {
          operation.parameters = operation.parameters?.filter((parameter) => parameter.$ref !== VERSION_HEADER);
        }
      },
    },
  },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
});
