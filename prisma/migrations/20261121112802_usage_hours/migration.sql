-- CreateTable
CREATE TABLE "usage_hours" (
    "account_id" UUID NOT NULL,
    "hour" TIMESTAMPTZ(3) NOT NULL,
    "key_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "requests" BIGINT NOT NULL,
    "failed_requests" BIGINT NOT NULL,
    "prompt_tokens" BIGINT NOT NULL,
    "completion_tokens" BIGINT NOT NULL,
    "cached_tokens" BIGINT NOT NULL,

    CONSTRAINT "usage_hours_pkey" PRIMARY KEY ("account_id","hour","key_id","model")
);

-- Adds the rows of one statement to their hours. Within the statement that writes them, so that a row counts exactly
-- when it is written, whoever writes it; in one order, so that two writers never wait for each other.
CREATE FUNCTION sum_up_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO usage_hours AS h (account_id, hour, key_id, model, requests, failed_requests, prompt_tokens,
    completion_tokens, cached_tokens)
  SELECT n.account_id, date_trunc('hour', n.created_at, 'UTC'), n.key_id, n.model, count(*),
    count(*) FILTER (WHERE n.status <> 200), sum(n.prompt_tokens), sum(n.completion_tokens), sum(n.cached_tokens)
  FROM added n GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
  ON CONFLICT (account_id, hour, key_id, model) DO UPDATE SET
    requests = h.requests + excluded.requests,
    failed_requests = h.failed_requests + excluded.failed_requests,
    prompt_tokens = h.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = h.completion_tokens + excluded.completion_tokens,
    cached_tokens = h.cached_tokens + excluded.cached_tokens;
  RETURN NULL;
END $$;

CREATE TRIGGER sum_up_usage AFTER INSERT ON usage_records
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION sum_up_usage();

-- What was written before there were hours.
INSERT INTO usage_hours (account_id, hour, key_id, model, requests, failed_requests, prompt_tokens,
  completion_tokens, cached_tokens)
SELECT n.account_id, date_trunc('hour', n.created_at, 'UTC'), n.key_id, n.model, count(*),
  count(*) FILTER (WHERE n.status <> 200), sum(n.prompt_tokens), sum(n.completion_tokens), sum(n.cached_tokens)
FROM usage_records n GROUP BY 1, 2, 3, 4;

-- Removes at most p_rows rows of the ledger that are older than p_before; their hours stay. One process does this at a
-- time; the others find nothing to do. Returns how many rows were removed.
CREATE FUNCTION remove_old_usage(p_before timestamptz, p_rows integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  removed integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(1752329587) THEN
    RETURN 0;
  END IF;
  DELETE FROM usage_records WHERE id IN (
    SELECT u.id FROM usage_records u WHERE u.created_at < p_before ORDER BY u.created_at LIMIT p_rows
  );
  GET DIAGNOSTICS removed = ROW_COUNT;
  RETURN removed;
END $$;
