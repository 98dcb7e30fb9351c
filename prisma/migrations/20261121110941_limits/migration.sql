-- CreateTable
CREATE TABLE "limit_overrides" (
    "account_id" UUID NOT NULL,
    "model" TEXT NOT NULL DEFAULT '',
    "rpm" INTEGER,
    "rpd" INTEGER,
    "tpm" INTEGER,
    "tpd" INTEGER,
    "ipm" INTEGER,
    "ipd" INTEGER,

    CONSTRAINT "limit_overrides_pkey" PRIMARY KEY ("account_id","model")
);

-- CreateTable
CREATE TABLE "limit_counters" (
    "account_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "minute" TIMESTAMPTZ(3) NOT NULL,
    "day" TIMESTAMPTZ(3) NOT NULL,
    "minute_requests" BIGINT NOT NULL DEFAULT 0,
    "minute_tokens" BIGINT NOT NULL DEFAULT 0,
    "minute_images" BIGINT NOT NULL DEFAULT 0,
    "day_requests" BIGINT NOT NULL DEFAULT 0,
    "day_tokens" BIGINT NOT NULL DEFAULT 0,
    "day_images" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "limit_counters_pkey" PRIMARY KEY ("account_id","model")
);

-- CreateTable
CREATE TABLE "limit_reservations" (
    "id" TEXT NOT NULL,
    "api_id" TEXT NOT NULL,
    "account_id" UUID NOT NULL,
    "key_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "end_user" TEXT,
    "tokens" BIGINT NOT NULL,
    "minute" TIMESTAMPTZ(3) NOT NULL,
    "day" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "limit_reservations_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "api_processes" (
    "id" TEXT NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "api_processes_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "limit_reservations_api_id_idx" ON "limit_reservations"("api_id");

-- AddForeignKey
ALTER TABLE "limit_overrides" ADD CONSTRAINT "limit_overrides_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Every request that is admitted changes the account's counter: leave room on its page for the new version.
ALTER TABLE "limit_counters" SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Checks requests of one account and model against all limits at once, in their order, and counts those that are
-- admitted. A request that any limit refuses counts nowhere. The row of the counter is locked meanwhile, so that
-- requests of other processes wait for their turn and none pass a limit together.
--
-- p_now: the time, for tests; null is the database's clock, read once the turn has come.
-- p_defaults: the model's limits in the order rpm, rpd, tpm, tpd, ipm, ipd; null in it is no limit.
-- p_ids, p_keys, p_end_users, p_tokens, p_images: one element for each request.
-- Returns one row for each request, in order: which limit refused it (null when it is admitted), the limits of
-- requests and tokens in a minute (null when there is none), what is left of them, and the time that was used.
CREATE FUNCTION reserve_limits(
  p_account uuid, p_model text, p_operation text, p_api text, p_now timestamptz, p_defaults bigint[],
  p_ids text[], p_keys uuid[], p_end_users text[], p_tokens bigint[], p_images bigint[]
) RETURNS TABLE (refused text, rpm float8, requests_left float8, tpm float8, tokens_left float8, at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  c limit_counters%ROWTYPE;
  l record;
  v_minute timestamptz;
  v_day timestamptz;
  v_admitted int[] := '{}';
BEGIN
  -- A crash of Postgres may forget the last half second of counting; waiting for the disk at each call is worse.
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO c FROM limit_counters t WHERE t.account_id = p_account AND t.model = p_model FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO limit_counters (account_id, model, minute, day)
      VALUES (p_account, p_model, 'epoch', 'epoch') ON CONFLICT DO NOTHING;
    SELECT * INTO c FROM limit_counters t WHERE t.account_id = p_account AND t.model = p_model FOR UPDATE;
  END IF;

  at := coalesce(p_now, clock_timestamp());
  v_minute := date_trunc('minute', at, 'UTC');
  v_day := date_trunc('day', at, 'UTC');
  -- A clock that is set back by a little does not open a window again.
  IF v_minute > c.minute OR at < c.minute - interval '1 minute' THEN
    c.minute := v_minute;
    c.minute_requests := 0; c.minute_tokens := 0; c.minute_images := 0;
  END IF;
  IF v_day > c.day OR at < c.day - interval '1 minute' THEN
    c.day := v_day;
    c.day_requests := 0; c.day_tokens := 0; c.day_images := 0;
  END IF;

  SELECT
    nullif(coalesce(m.rpm, a.rpm, p_defaults[1]), -1) AS rpm,
    nullif(coalesce(m.rpd, a.rpd, p_defaults[2]), -1) AS rpd,
    nullif(coalesce(m.tpm, a.tpm, p_defaults[3]), -1) AS tpm,
    nullif(coalesce(m.tpd, a.tpd, p_defaults[4]), -1) AS tpd,
    nullif(coalesce(m.ipm, a.ipm, p_defaults[5]), -1) AS ipm,
    nullif(coalesce(m.ipd, a.ipd, p_defaults[6]), -1) AS ipd
  INTO l
  FROM (SELECT) AS one
  LEFT JOIN limit_overrides m ON m.account_id = p_account AND m.model = p_model
  LEFT JOIN limit_overrides a ON a.account_id = p_account AND a.model = '';
  rpm := l.rpm;
  tpm := l.tpm;

  FOR i IN 1 .. cardinality(p_ids) LOOP
    -- Days first: who waits for the minute only would be refused again.
    refused := CASE
      WHEN c.day_requests + 1 > l.rpd THEN 'rpd'
      WHEN c.day_tokens + p_tokens[i] > l.tpd THEN 'tpd'
      WHEN p_images[i] > 0 AND c.day_images + p_images[i] > l.ipd THEN 'ipd'
      WHEN c.minute_requests + 1 > l.rpm THEN 'rpm'
      WHEN c.minute_tokens + p_tokens[i] > l.tpm THEN 'tpm'
      WHEN p_images[i] > 0 AND c.minute_images + p_images[i] > l.ipm THEN 'ipm'
    END;
    IF refused IS NULL THEN
      c.minute_requests := c.minute_requests + 1; c.day_requests := c.day_requests + 1;
      c.minute_tokens := c.minute_tokens + p_tokens[i]; c.day_tokens := c.day_tokens + p_tokens[i];
      c.minute_images := c.minute_images + p_images[i]; c.day_images := c.day_images + p_images[i];
      v_admitted := v_admitted || i;
    END IF;
    requests_left := greatest(0, l.rpm - c.minute_requests);
    tokens_left := greatest(0, l.tpm - c.minute_tokens);
    -- greatest() passes over null.
    IF l.rpm IS NULL THEN requests_left := NULL; END IF;
    IF l.tpm IS NULL THEN tokens_left := NULL; END IF;
    RETURN NEXT;
  END LOOP;

  IF cardinality(v_admitted) > 0 THEN
    UPDATE limit_counters t SET
      minute = c.minute, day = c.day,
      minute_requests = c.minute_requests, minute_tokens = c.minute_tokens, minute_images = c.minute_images,
      day_requests = c.day_requests, day_tokens = c.day_tokens, day_images = c.day_images
    WHERE t.account_id = p_account AND t.model = p_model;
    INSERT INTO limit_reservations
      (id, api_id, account_id, key_id, model, operation, end_user, tokens, minute, day, created_at)
    SELECT p_ids[i], p_api, p_account, p_keys[i], p_model, p_operation, p_end_users[i], p_tokens[i],
      c.minute, c.day, at
    FROM unnest(v_admitted) AS i;
  END IF;
END $$;

-- Replaces what requests of one account and model had reserved by what they used, in the windows that they were
-- counted in. A request that has no reservation any more is passed over.
CREATE FUNCTION settle_limits(p_account uuid, p_model text, p_ids text[], p_used bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  c limit_counters%ROWTYPE;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO c FROM limit_counters t WHERE t.account_id = p_account AND t.model = p_model FOR UPDATE;
  WITH ended AS (
    DELETE FROM limit_reservations r USING unnest(p_ids, p_used) AS u (id, used)
    WHERE r.id = u.id AND r.account_id = p_account AND r.model = p_model
    RETURNING r.minute, r.day, u.used - r.tokens AS excess
  ), sums AS (
    SELECT coalesce(sum(excess) FILTER (WHERE ended.minute = c.minute), 0) AS of_minute,
      coalesce(sum(excess) FILTER (WHERE ended.day = c.day), 0) AS of_day
    FROM ended
  )
  UPDATE limit_counters t SET
    minute_tokens = greatest(0, t.minute_tokens + sums.of_minute),
    day_tokens = greatest(0, t.day_tokens + sums.of_day)
  FROM sums
  WHERE t.account_id = p_account AND t.model = p_model AND (sums.of_minute <> 0 OR sums.of_day <> 0);
END $$;

-- Gives back what processes had reserved that have been silent for p_silence, and sees to it that each of their
-- requests has its row in the ledger: the one that a worker wrote, or one that says that it was lost. One process
-- does this at a time; the others find nothing to do. Returns how many requests were swept.
CREATE FUNCTION sweep_limits(p_silence interval) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  dead text[];
  swept integer := 0;
  g record;
BEGIN
  IF NOT pg_try_advisory_xact_lock(1752329586) THEN
    RETURN 0;
  END IF;
  SELECT array_agg(DISTINCT r.api_id) INTO dead FROM limit_reservations r
    WHERE NOT EXISTS (
      SELECT FROM api_processes p WHERE p.id = r.api_id AND p.seen_at > clock_timestamp() - p_silence
    );
  IF dead IS NOT NULL THEN
    INSERT INTO usage_records (id, account_id, key_id, model, operation, end_user, prompt_tokens,
      completion_tokens, finish_reason, status, total_ms, created_at)
    SELECT r.id, r.account_id, r.key_id, r.model, r.operation, r.end_user, 0, 0, 'lost', 499,
      extract(epoch FROM clock_timestamp() - r.created_at) * 1000, r.created_at
    FROM limit_reservations r WHERE r.api_id = ANY (dead)
    ON CONFLICT (id) DO NOTHING;
    FOR g IN
      SELECT r.account_id, r.model, array_agg(r.id) AS ids,
        array_agg((u.prompt_tokens + u.completion_tokens)::bigint) AS used
      FROM limit_reservations r JOIN usage_records u ON u.id = r.id
      WHERE r.api_id = ANY (dead)
      GROUP BY r.account_id, r.model ORDER BY r.account_id, r.model
    LOOP
      PERFORM settle_limits(g.account_id, g.model, g.ids, g.used);
      swept := swept + cardinality(g.ids);
    END LOOP;
  END IF;
  DELETE FROM api_processes p WHERE p.seen_at <= clock_timestamp() - p_silence;
  RETURN swept;
END $$;
