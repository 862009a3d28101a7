// A healthy CRUD server in Express: `compare` must find nothing wrong with it. Its document is express_crud.yaml.
import express from 'express';

const app = express();
app.disable('x-powered-by');
app.use(express.json({ type: 'application/json', limit: '64kb' }));

const notes = new Map();
let lastId = 0;

const problem = (response, status, detail) =>
  response.status(status).type('application/problem+json').send(JSON.stringify({ title: detail, status }));

// Returns what is wrong with a note.
function problemOf(note) {
  if (note === null || typeof note !== 'object' || Array.isArray(note)) return 'The body must be an object.';
  const { title, done = false, priority = 1, ...rest } = note;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) return `${unknown} is not a property of a note.`;
  if (typeof title !== 'string' || [...title].length < 1 || [...title].length > 80) return 'title must have 1 to 80 characters.';
  if (typeof done !== 'boolean') return 'done must be true or false.';
  if (!Number.isInteger(priority) || priority < 1 || priority > 5) return 'priority must be an integer from 1 to 5.';
  return null;
}

app.use('/notes', (request, response, next) => {
  if (request.header('authorization') !== `Bearer ${process.env.TOKEN}`) {
    response.set('WWW-Authenticate', 'Bearer');
    return problem(response, 401, 'The token is missing or wrong.');
  }
  next();
});

// Rejects a body that is not a note.
function checkNote(request, response, next) {
  if (!request.is('application/json')) return problem(response, 415, 'The body must be JSON.');
  const wrong = problemOf(request.body);
  if (wrong) return problem(response, 400, wrong);
  next();
}

app.param('id', (request, response, next, id) => {
  if (!/^\d{1,9}$/.test(id)) return problem(response, 400, 'id must be an integer.');
  if (!notes.has(Number(id))) return problem(response, 404, 'There is no such note.');
  request.note = notes.get(Number(id));
  next();
});

app.route('/notes')
  .get((request, response) => {
    const { done, priority } = request.query;
    if (done !== undefined && !['true', 'false'].includes(done)) return problem(response, 400, 'done must be true or false.');
    if (priority !== undefined && !/^[1-5]$/.test(priority)) return problem(response, 400, 'priority must be an integer from 1 to 5.');
    const found = [...notes.values()].filter((note) =>
      (done === undefined || String(note.done) === done) && (priority === undefined || String(note.priority) === priority));
    response.json({ items: found, total: found.length });
  })
  .post(checkNote, (request, response) => {
    const { title, done = false, priority = 1 } = request.body;
    lastId += 1;
    notes.set(lastId, { id: lastId, title, done, priority });
    response.status(201).location(`/notes/${lastId}`).json(notes.get(lastId));
  })
  .all((_, response) => problem(response.set('Allow', 'GET, HEAD, POST'), 405, 'The method is not allowed.'));

app.route('/notes/:id')
  .get((request, response) => response.json(request.note))
  .put(checkNote, (request, response) => {
    const { title, done = false, priority = 1 } = request.body;
    Object.assign(request.note, { title, done, priority });
    response.json(request.note);
  })
  .delete((request, response) => {
    notes.delete(request.note.id);
    response.status(204).end();
  })
  .all((_, response) => problem(response.set('Allow', 'GET, HEAD, PUT, DELETE'), 405, 'The method is not allowed.'));

app.use((_, response) => problem(response, 404, 'There is no such path.'));
app.use((error, _request, response, _next) => problem(response, error.status ?? 500, error.status ? 'The body is not valid JSON.' : 'The server failed.'));

app.listen(Number(process.env.PORT), '127.0.0.1');
