// A Firestore for tests: an emulator that speaks gRPC, behind the REST API as Google's own
// definitions declare it. Requests are parsed with the definitions and the JSON parser of
// Google's client: an unknown field, a wrong type or a wrong path is refused, as there.
// Names in snake case, which Google's server takes too, are refused here. `GET /client/PATH`
// answers what Google's client reads. Nothing is kept.
//
// The emulator has neither BatchWrite nor update times as preconditions nor limits of size.
// These are made here: one Commit for each write, one after the other.
//
// Usage: node server.js FOLDER_OF_NODE_MODULES PORT

const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { createRequire } = require("node:module");

// Google's client looks for a cloud machine around it otherwise.
process.env.METADATA_SERVER_DETECTION = "none";

const modules = path.resolve(process.argv[2]);
const port = Number(process.argv[3]);
const load = createRequire(path.join(modules, "server.js"));
const grpc = load("@grpc/grpc-js");
const protobuf = load("protobufjs");
const proto3 = load("proto3-json-serializer");
const { FirestoreServer } = load("@firestore-emulator/server");
const { Firestore, Timestamp } = load("@google-cloud/firestore");

const definitions = path.join(modules, "@google-cloud/firestore/build/protos/v1.json");
const root = protobuf.Root.fromJSON(JSON.parse(fs.readFileSync(definitions, "utf8")));
const service = root.lookupService("google.firestore.v1.Firestore").resolveAll();
const Status = root.lookupType("google.rpc.Status");

const { INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION } = grpc.status;
const { UNIMPLEMENTED, UNAUTHENTICATED } = grpc.status;
// https://cloud.google.com/firestore/quotas
const MAX_DOCUMENT_BYTES = 1_048_576;
const MAX_REQUEST_BYTES = 10 * 1_048_576;
const MAX_WRITES = 500;
const MAX_NAME_BYTES = 1500;

class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const invalid = (message) => new Refusal(INVALID_ARGUMENT, message);

// ---- From JSON to messages ----

const INTEGER = /^(u?int|s?fixed|sint)(32|64)$/;

// What Google's parser lets pass and Google's server does not.
function check(type, json, place) {
  if (type.fullName.startsWith(".google.protobuf.")) return;
  if (json === null || typeof json !== "object" || Array.isArray(json)) {
    throw invalid(`${place} is not an object`);
  }
  const chosen = new Map();
  for (const [name, value] of Object.entries(json)) {
    const field = type.fields[name];
    const at = `${place}.${name}`;
    if (!field) throw invalid(`unknown name "${name}" at '${place}': cannot find field`);
    if (field.partOf) {
      const other = chosen.get(field.partOf.name);
      if (other) throw invalid(`${place} has both ${other} and ${name}`);
      chosen.set(field.partOf.name, name);
    }
    for (const [one, where] of each(field, value, at)) {
      if (INTEGER.test(field.type) && !/^-?\d+$/.test(String(one))) throw invalid(`${where} is not an integer`);
      if (field.type === "string" && typeof one !== "string") throw invalid(`${where} is not a string`);
      if (field.type === "bool" && typeof one !== "boolean") throw invalid(`${where} is not a boolean`);
      if (field.type === "google.protobuf.NullValue" && one !== null) throw invalid(`${where} is not null`);
      if (field.resolvedType instanceof protobuf.Type) check(field.resolvedType, one, where);
    }
  }
}

function each(field, value, at) {
  if (field.repeated) {
    if (!Array.isArray(value)) throw invalid(`${at} is not an array`);
    return value.map((one, n) => [one, `${at}[${n}]`]);
  }
  if (field.map) {
    if (value === null || typeof value !== "object") throw invalid(`${at} is not a map`);
    return Object.entries(value).map(([key, one]) => [one, `${at}[${key}]`]);
  }
  return [[value, at]];
}

function parse(type, json) {
  check(type, json, "request");
  let message;
  try {
    message = proto3.fromProto3JSON(type, json);
  } catch (error) {
    throw invalid(error.message);
  }
  const wrong = type.verify(message);
  if (wrong) throw invalid(wrong);
  return message;
}

// ---- Paths ----

// `/v1/{database=projects/*/databases/*}/documents:batchGet` as a regular expression.
function route(template) {
  const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const glob = (text) => literal(text).replace(/\\\*\\\*/g, ".+").replace(/\\\*/g, "[^/]+");
  const parts = template.split(/\{([^}]+)\}/);
  const source = parts.map((part, n) => {
    if (n % 2 === 0) return literal(part);
    const [name, pattern = "*"] = part.split("=");
    return `(?<${protobuf.util.camelCase(name)}>${glob(pattern)})`;
  });
  return new RegExp(`^${source.join("")}$`);
}

const routes = [];
for (const method of service.methodsArray) {
  const option = method.parsedOptions.find((one) => one["(google.api.http)"]);
  const { post, body } = option["(google.api.http)"];
  if (post && body === "*" && !method.requestStream) routes.push({ method, path: route(post) });
}

function find(verb, url) {
  for (const { method, path } of verb === "POST" ? routes : []) {
    const found = path.exec(url);
    if (found) return { method, bound: { ...found.groups } };
  }
  throw new Refusal(NOT_FOUND, `no method has the path ${verb} ${url}`);
}

// ---- Calls ----

let client;

// All responses of a call.
function call(method, request) {
  const { resolvedRequestType: input, resolvedResponseType: output, name } = method;
  const to = (message) => Buffer.from(input.encode(message).finish());
  const from = (bytes) => output.decode(bytes);
  const target = `/google.firestore.v1.Firestore/${name}`;
  return new Promise((resolve, reject) => {
    const all = [];
    if (!method.responseStream) {
      client.makeUnaryRequest(target, to, from, request, (error, one) => (error ? reject(error) : resolve([one])));
      return;
    }
    const stream = client.makeServerStreamRequest(target, to, from, request);
    stream.on("data", (one) => all.push(one));
    stream.on("error", reject);
    stream.on("end", () => resolve(all));
  });
}

const method = (name) => service.methods[name];

async function batchGet(request) {
  const all = await call(method("BatchGetDocuments"), request);
  const mask = request.mask?.fieldPaths;
  for (const { found } of all) {
    for (const field of found && mask ? Object.keys(found.fields) : []) {
      if (!mask.includes(field)) delete found.fields[field];
    }
  }
  return all;
}

// What firestore/v1/document.proto says of names and values.
function checkFields(fields, place) {
  for (const [name, value] of Object.entries(fields)) {
    const at = `${place}.${name}`;
    const bytes = Buffer.byteLength(name);
    if (bytes === 0 || bytes > MAX_NAME_BYTES || /^__.*__$/.test(name)) throw invalid(`${at} has an invalid name`);
    checkValue(value, at);
  }
}

function checkValue(value, place) {
  if (!value.valueType) throw invalid(`${place} has no value`);
  if (value.arrayValue) {
    for (const one of value.arrayValue.values) {
      if (one.arrayValue) throw invalid(`${place} has an array in an array`);
      checkValue(one, place);
    }
  }
  if (value.mapValue) checkFields(value.mapValue.fields, place);
}

function checkDocument(write, database) {
  const { update } = write;
  if (!update) throw new Refusal(UNIMPLEMENTED, "only updates are served here");
  const parts = update.name.slice(`${database}/documents/`.length).split("/");
  const isInside = update.name.startsWith(`${database}/documents/`);
  if (!isInside || parts.length % 2 !== 0 || parts.some((part) => !part || /^(\.\.?|__.*__)$/.test(part))) {
    throw invalid(`"${update.name}" is not the name of a document of ${database}`);
  }
  checkFields(update.fields, "fields");
  const bytes = update.constructor.encode(update).finish().length;
  if (bytes > MAX_DOCUMENT_BYTES) {
    throw invalid(`the document has ${bytes} bytes, and ${MAX_DOCUMENT_BYTES} are allowed`);
  }
  for (const field of write.updateMask?.fieldPaths ?? []) {
    if (!/^[A-Za-z_][A-Za-z_0-9]*$/.test(field)) throw invalid(`"${field}" is not a field path`);
  }
}

const nanos = (time) => BigInt(String(time.seconds)) * 1_000_000_000n + BigInt(time.nanos ?? 0);

async function checkUpdateTime(write, database) {
  const time = write.currentDocument?.updateTime;
  if (!time) return;
  const [{ found }] = await call(method("BatchGetDocuments"), { database, documents: [write.update.name] });
  if (!found) throw new Refusal(NOT_FOUND, `no document to update: ${write.update.name}`);
  if (nanos(found.updateTime) !== nanos(time)) {
    throw new Refusal(FAILED_PRECONDITION, "the stored version does not match the required base version");
  }
}

// The emulator counts milliseconds; no two versions may have the same.
async function commit(write, database) {
  await checkUpdateTime(write, database);
  await new Promise((done) => setTimeout(done, 2));
  const [{ writeResults }] = await call(method("Commit"), { database, writes: [write] });
  return writeResults[0];
}

async function batchWrite({ database, writes }) {
  if (writes.length > MAX_WRITES) throw invalid(`${writes.length} writes, and ${MAX_WRITES} are allowed`);
  const names = writes.map((write) => write.update?.name ?? write.delete);
  if (new Set(names).size !== names.length) throw invalid("a document is written more than once");
  const reply = { writeResults: [], status: [] };
  for (const write of writes) {
    try {
      checkDocument(write, database);
      reply.writeResults.push(await commit(write, database));
      reply.status.push(Status.create({}));
    } catch (error) {
      if (!error.code) throw error;
      reply.writeResults.push({});
      reply.status.push(Status.create({ code: error.code, message: error.details ?? error.message }));
    }
  }
  const type = method("BatchWrite").resolvedResponseType;
  return [type.fromObject(reply)];
}

const own = { BatchGetDocuments: batchGet, BatchWrite: batchWrite };

// ---- Google's client ----

// A value as JSON, with the name of its type where JSON has none.
function describe(value) {
  if (value instanceof Timestamp) return { Timestamp: value.toDate().toISOString() };
  if (Array.isArray(value)) return value.map(describe);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, describe(one)]));
}

// `/client/PROJECT/COLLECTION/ID`: a document. `/client/PROJECT/COLLECTION?tag=TAG`: the
// ids of those with a tag, newest first.
async function read(url) {
  const [project, ...parts] = url.pathname.slice("/client/".length).split("/").map(decodeURIComponent);
  const store = new Firestore({ projectId: project });
  try {
    if (parts.length === 2) {
      const snapshot = await store.doc(parts.join("/")).get();
      return snapshot.exists ? describe(snapshot.data()) : null;
    }
    const tag = url.searchParams.get("tag");
    const query = store.collection(parts[0]).where("tags", "array-contains", tag).orderBy("publishedAt", "desc");
    const found = await query.get();
    return found.docs.map((one) => one.id);
  } finally {
    await store.terminate();
  }
}

// ---- The server ----

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (body.length > MAX_REQUEST_BYTES) throw invalid("the request is larger than 10 MiB");
  if (!/^application\/json\b/.test(request.headers["content-type"])) throw invalid("the content is not JSON");
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw invalid(`the content is not JSON: ${error.message}`);
  }
}

async function serve(request) {
  const url = new URL(request.url, "http://127.0.0.1");
  if (url.pathname.startsWith("/client/")) return read(url);
  const { method, bound } = find(request.method, decodeURIComponent(url.pathname));
  if (request.headers.authorization !== "Bearer owner") throw new Refusal(UNAUTHENTICATED, "not the owner");
  const message = parse(method.resolvedRequestType, await bodyOf(request));
  Object.assign(message, bound);
  const all = await (own[method.name] ?? ((one) => call(method, one)))(message);
  const json = all.map((one) => proto3.toProto3JSON(one));
  return method.responseStream ? json : json[0];
}

const HTTP_STATUS = {
  [INVALID_ARGUMENT]: 400,
  [FAILED_PRECONDITION]: 400,
  [UNAUTHENTICATED]: 401,
  [NOT_FOUND]: 404,
  [ALREADY_EXISTS]: 409,
  [UNIMPLEMENTED]: 501,
};

// Check and commit are one step: requests are served one after the other.
let last = Promise.resolve();
const server = http.createServer((request, response) => {
  const reply = (status, json) => {
    response.writeHead(status, { "content-type": "application/json; charset=UTF-8" });
    response.end(JSON.stringify(json));
  };
  last = last.then(() =>
    serve(request).then(
      (json) => reply(200, json),
      (error) => {
        const status = HTTP_STATUS[error.code] ?? 500;
        const name = grpc.status[error.code] ?? "INTERNAL";
        reply(status, { error: { code: status, message: error.details ?? error.message, status: name } });
      },
    ),
  );
});

const emulator = new FirestoreServer();
const loopback = grpc.ServerCredentials.createInsecure();
emulator.server.bindAsync("127.0.0.1:0", loopback, (error, bound) => {
  if (error) throw error;
  const host = `127.0.0.1:${bound}`;
  process.env.FIRESTORE_EMULATOR_HOST = host;
  client = new grpc.Client(host, grpc.credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });
  server.listen(port, "127.0.0.1", () => console.log("ready"));
});
// Until it is killed, or whoever started it has gone.
process.stdin.resume().on("end", () => process.exit(0));
