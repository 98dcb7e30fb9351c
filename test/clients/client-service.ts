import { TestService, type TestServiceOptions } from '../end-to-end/test-service.js';
import { createTestDatabase } from '../support/postgres.js';

/** A service for clients to speak to; which backplane it runs on is nothing they could see. */
export interface ClientService {
  readonly url: string;
  readonly key: string;
  close(): Promise<void>;
}

export async function startClientService(options?: TestServiceOptions): Promise<ClientService> {
  const database = await createTestDatabase();
  try {
    const service = await TestService.start({ databaseUrl: database.url, redisUrl: undefined }, options);
    return {
      url: service.url,
      key: service.key,
      close: async () => {
        await service.close();
        await database.drop();
      },
    };
  } catch (error) {
    await database.drop();
    throw error;
  }
}
