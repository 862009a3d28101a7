import { defineConfig } from '@hey-api/openapi-ts';

export default defineConfig({
  // `clients/check` removes the version header from the document.
  input: process.env.BOXOFFICE_DOCUMENT ?? '../../spec/openapi.yaml',
  output: { path: 'src/generated', importFileExtension: '.js' },
  parser: {
    patch: {
      parameters: {
        // `connect` sends the version with each request.
        ClientVersion: (parameter) => {
          parameter.required = false;
        },
      },
    },
  },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
});
