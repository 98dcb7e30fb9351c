import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rerankResponseSchema } from '../../src/contract/rerank.js';
import { loadConfig } from '../../src/platform/config.js';
import { TestService } from '../end-to-end/test-service.js';
import { defaultCatalogueFile, prepareDefaultModels } from '../support/default-models.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const chatModel = 'SmolLM2-135M-Instruct';
const rerankModel = 'all-MiniLM-L6-v2';

/** The ten passages that each question is asked of, and which of them answers it. */
const passages = [
  'Leonardo da Vinci painted the Mona Lisa in Florence at the start of the sixteenth century.',
  'Water boils at one hundred degrees Celsius at sea level, and at less on a high mountain.',
  'The Amazon carries more water to the sea than any other river on Earth.',
  'Photosynthesis lets green plants turn sunlight, water and carbon dioxide into sugar.',
  'The French Revolution began in 1789 with the storming of the Bastille in Paris.',
  'A mill wheel is turned by falling water and drives the stones that grind the grain.',
  'Penicillin was the first antibiotic; Alexander Fleming found it in a mould in 1928.',
  'The Great Wall of China was built over centuries to keep out raiders from the north.',
  'Bees tell one another where flowers are by dancing inside the hive.',
  'An honest loaf of bread needs flour, water, salt and yeast, and a hot oven.',
];
const questions: [question: string, answer: number][] = [
  ['Who painted the Mona Lisa?', 0],
  ['At what temperature does water boil?', 1],
  ['Which river is the largest by discharge?', 2],
  ['How do plants make their food?', 3],
  ['When did the revolution in France start?', 4],
  ['How is grain ground with the power of water?', 5],
  ['Who discovered the first antibiotic?', 6],
  ['Why did the Chinese build a long wall?', 7],
  ['How do honeybees communicate?', 8],
  ['What are the ingredients of bread?', 9],
];

const { available } = await prepareDefaultModels();

describe.skipIf(!available)('the default models over HTTP', { timeout: 120_000 }, () => {
  let database: TestDatabase;
  let service: TestService;
  beforeAll(async () => {
    database = await createTestDatabase();
    service = await TestService.start(
      { databaseUrl: database.url, redisUrl: undefined },
      {
        workers: [chatModel, rerankModel],
        environment: { HEADRACE_MODELS: defaultCatalogueFile, HEADRACE_CACHE_DIR: loadConfig().cacheDir },
      },
    );
    await service.ready();
  });
  afterAll(async () => {
    await service?.close();
    await database?.drop();
  });

  it('answer a chat request in English that ends by itself', async () => {
    const { choices } = await service.complete({
      model: chatModel,
      messages: [{ role: 'user', content: 'What is the capital of France?' }],
      max_tokens: 200,
    });
    expect(choices[0]!.finish_reason).toBe('stop');
    expect(choices[0]!.message.content).toMatch(/Paris/);
    const words = choices[0]!.message.content!.toLowerCase().match(/[a-z']+/g)!;
    const common = words.filter((word) => /^(the|of|is|a|an|and|in|to|it|city|for|that)$/.test(word));
    expect(common.length).toBeGreaterThan(words.length / 6);
  });

  it.each(questions)('rank the passage that answers first: %s', async (query, answer) => {
    const response = await service.post('/v1/rerank', {
      model: rerankModel,
      query,
      documents: passages,
      top_n: 1,
    });
    expect(response.status).toBe(200);
    expect(rerankResponseSchema.parse(await response.json()).results[0]!.index).toBe(answer);
  });
});
