-- Raises what a request has reserved to the tokens that it needs, now that they are counted, if its limits of tokens
-- leave room for the difference. A request whose minute or day is over by now counts in the current one instead, as a
-- whole: what a window has counted stays within its limit, also of one that nobody looks at any more.
--
-- p_now, p_tpm, p_tpd: as for reserve_limits.
-- Returns which limit refused it; null when the reservation is large enough now, and `gone` when there is none.
CREATE FUNCTION raise_reservation(
  p_account uuid, p_model text, p_id text, p_tokens bigint, p_now timestamptz, p_tpm bigint, p_tpd bigint
) RETURNS TABLE (refused text, at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  c limit_counters%ROWTYPE;
  r limit_reservations%ROWTYPE;
  l record;
  v_minute timestamptz;
  v_day timestamptz;
  more_of_minute bigint;
  more_of_day bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO c FROM limit_counters t WHERE t.account_id = p_account AND t.model = p_model FOR UPDATE;
  at := coalesce(p_now, clock_timestamp());
  SELECT * INTO r FROM limit_reservations t
    WHERE t.id = p_id AND t.account_id = p_account AND t.model = p_model;
  IF NOT FOUND THEN
    refused := 'gone';
    RETURN NEXT;
    RETURN;
  END IF;
  IF p_tokens <= r.tokens THEN
    RETURN NEXT;
    RETURN;
  END IF;

  v_minute := date_trunc('minute', at, 'UTC');
  v_day := date_trunc('day', at, 'UTC');
  IF v_minute > c.minute OR at < c.minute - interval '1 minute' THEN
    c.minute := v_minute;
    c.minute_requests := 0; c.minute_tokens := 0; c.minute_images := 0;
  END IF;
  IF v_day > c.day OR at < c.day - interval '1 minute' THEN
    c.day := v_day;
    c.day_requests := 0; c.day_tokens := 0; c.day_images := 0;
  END IF;
  more_of_minute := p_tokens - CASE WHEN r.minute = c.minute THEN r.tokens ELSE 0 END;
  more_of_day := p_tokens - CASE WHEN r.day = c.day THEN r.tokens ELSE 0 END;

  SELECT
    nullif(coalesce(m.tpm, a.tpm, p_tpm), -1) AS tpm,
    nullif(coalesce(m.tpd, a.tpd, p_tpd), -1) AS tpd
  INTO l
  FROM (SELECT) AS one
  LEFT JOIN limit_overrides m ON m.account_id = p_account AND m.model = p_model
  LEFT JOIN limit_overrides a ON a.account_id = p_account AND a.model = '';
  refused := CASE
    WHEN c.day_tokens + more_of_day > l.tpd THEN 'tpd'
    WHEN c.minute_tokens + more_of_minute > l.tpm THEN 'tpm'
  END;
  IF refused IS NULL THEN
    UPDATE limit_counters t SET
      minute = c.minute, day = c.day,
      minute_requests = c.minute_requests, minute_tokens = c.minute_tokens + more_of_minute,
      minute_images = c.minute_images,
      day_requests = c.day_requests, day_tokens = c.day_tokens + more_of_day, day_images = c.day_images
    WHERE t.account_id = p_account AND t.model = p_model;
    UPDATE limit_reservations t SET tokens = p_tokens, minute = c.minute, day = c.day WHERE t.id = p_id;
  END IF;
  RETURN NEXT;
END $$;
