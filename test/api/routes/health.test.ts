import { afterEach, describe, expect, it } from 'vitest';
import type { AppOptions } from '../../../src/api/app.js';
import { errorBody } from '../../support/error-body.js';
import { startTestService, type TestService } from '../support/test-app.js';

let service: TestService;
afterEach(() => service.close());

const everyone: AppOptions['presence'] = {
  workersOf: (model) => [{ role: 'worker', id: 'w', leaving: false, model, held: 0, running: 0 }],
};

describe('/livez', () => {
  it('answers while the database is away, without a key', async () => {
    service = await startTestService();
    service.database.away = true;
    const response = await service.app.inject({ url: '/livez' });
    expect(response.statusCode).toBe(200);
  });
});

describe('/readyz', () => {
  it('is 200 when the database, the backplane and a worker for each model answer', async () => {
    service = await startTestService({ presence: everyone });
    const response = await service.app.inject({ url: '/readyz' });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ status: 'ready' });
  });

  it('is 503 and names the models that no worker serves', async () => {
    const presence: AppOptions['presence'] = {
      workersOf: (model) => (model === 'tiny-chat' ? everyone.workersOf(model) : []),
    };
    service = await startTestService({ presence });
    const response = await service.app.inject({ url: '/readyz' });
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    expect(response.json()).toEqual(
      errorBody(50505, 'Not ready: no worker serves owner/seeing-chat; no worker serves tiny-rerank.'),
    );
  });

  it('is 503 and names what is away, without its address', async () => {
    service = await startTestService({ presence: everyone });
    service.database.check = async () => {
      throw new Error('connect ECONNREFUSED 10.0.0.7:5432');
    };
    service.backplane.check = () => new Promise((_resolve, reject) => reject(new Error('10.0.0.8 is away')));
    const response = await service.app.inject({ url: '/readyz' });
    expect(response.json().message).toBe(
      'Not ready: the database does not answer; the backplane does not answer.',
    );
  });
});
