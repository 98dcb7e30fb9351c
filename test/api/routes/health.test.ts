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

  it('logs once what is lacking and once that it is there, however often it is asked', async () => {
    let isServed = false;
    const presence: AppOptions['presence'] = {
      workersOf: (model) => (isServed ? everyone.workersOf(model) : []),
    };
    service = await startTestService({ presence });
    const cause = new Error('connect ECONNREFUSED 10.0.0.7:5432');
    service.database.check = () => Promise.reject(cause);
    const ask = async () => {
      for (let count = 0; count < 3; count++) await service.app.inject({ url: '/readyz' });
    };
    await ask();
    service.database.check = async () => {};
    await ask();
    isServed = true;
    await ask();
    const told = service.log.filter(({ msg }) => /ready/.test(String(msg)));
    expect(told).toMatchObject([
      {
        level: 40,
        msg: expect.stringContaining('the database does not answer'),
        err: { message: cause.message },
      },
      { level: 40, msg: expect.stringMatching(/^not ready: no worker serves /) },
      { level: 30, msg: 'ready' },
    ]);
  });
});
