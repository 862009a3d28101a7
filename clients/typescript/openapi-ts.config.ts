import { defineConfig } from '@hey-api/openapi-ts';

export default defineConfig({
  // `clients/check` removes the version header from the document: `connect` sends it with each request.
  input: process.env.BOXOFFICE_DOCUMENT ?? '../../spec/openapi.yaml',
  output: { path: 'src/generated', importFileExtension: '.js' },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
});
