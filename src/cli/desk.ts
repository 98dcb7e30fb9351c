import type { Catalogue } from '../models/catalogue.js';
import type { ChangeContext } from '../platform/change.js';
import type { Database } from '../platform/database/database.js';
import type { Terminal } from './client/terminal.js';

/** What commands of operators work with. */
export interface Desk extends ChangeContext {
  readonly database: Database;
  /** The catalogue file, for those who need it. */
  readonly loadCatalogue: () => Promise<Catalogue>;
  readonly terminal: Terminal;
  readonly json: boolean;
}
