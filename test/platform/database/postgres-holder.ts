// A program for a child process: runs a Postgres in the folder of its argument, says where, and stays.
import { startEmbeddedPostgres } from '../../../src/platform/database/embedded-postgres.js';
import { createLogger } from '../../../src/platform/logger.js';

const logger = createLogger({ level: 'silent', name: 'postgres-holder' });
const { url } = await startEmbeddedPostgres({ dataDir: process.argv[2] ?? '', logger, durable: false });
process.send?.({ url });
