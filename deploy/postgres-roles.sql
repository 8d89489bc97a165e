-- Rights on a PostgreSQL broker by role: everett_work takes jobs and records what they came to, everett_submit submits,
-- pauses, cancels and removes runs and fetches results, everett_watch reads. Run it as the owner of the tables, after
-- that user has connected once (`everett status --broker URL`); then CREATE USER alice IN ROLE everett_submit, and so on.
-- For searches of faults run it again with PGOPTIONS='-c search_path=everett_tests'.

BEGIN;

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['everett_work', 'everett_submit', 'everett_watch'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I', role);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role);
    END LOOP;
END
$$;

REVOKE ALL ON everett_objects, everett_records, everett_jobs FROM PUBLIC;
GRANT SELECT ON everett_objects, everett_records, everett_jobs TO everett_work, everett_submit, everett_watch;

-- Objects are named by their hashes. Damaged ones are removed, and stored again.
GRANT INSERT, DELETE ON everett_objects TO everett_work, everett_submit;

-- Workers take jobs out of the queue, and change how long they have them.
GRANT INSERT, DELETE ON everett_jobs TO everett_work, everett_submit;
GRANT UPDATE (delivery, leased_until) ON everett_jobs TO everett_work;
GRANT USAGE ON SEQUENCE everett_jobs_added_seq TO everett_work, everett_submit;

-- Which records a role writes. The first outcome counts, and a run and its signature never change: nobody updates them.
GRANT INSERT, UPDATE (value) ON everett_records TO everett_work, everett_submit;
GRANT DELETE ON everett_records TO everett_submit;
ALTER TABLE everett_records ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS everett_read ON everett_records;
DROP POLICY IF EXISTS everett_work_adds ON everett_records;
DROP POLICY IF EXISTS everett_work_changes ON everett_records;
DROP POLICY IF EXISTS everett_submit_adds ON everett_records;
DROP POLICY IF EXISTS everett_submit_changes ON everett_records;
DROP POLICY IF EXISTS everett_submit_removes ON everett_records;
CREATE POLICY everett_read ON everett_records FOR SELECT USING (true);
CREATE POLICY everett_work_adds ON everett_records FOR INSERT TO everett_work
    WITH CHECK (kind NOT IN ('run', 'signature', 'cancelled'));
CREATE POLICY everett_work_changes ON everett_records FOR UPDATE TO everett_work
    USING (kind NOT IN ('run', 'signature', 'cancelled', 'outcome', 'again', 'grant', 'began'));
CREATE POLICY everett_submit_adds ON everett_records FOR INSERT TO everett_submit
    WITH CHECK (kind IN ('run', 'signature', 'cancelled', 'outcome', 'paused', 'over', 'again', 'grant'));
CREATE POLICY everett_submit_changes ON everett_records FOR UPDATE TO everett_submit
    USING (kind IN ('paused', 'over'));
CREATE POLICY everett_submit_removes ON everett_records FOR DELETE TO everett_submit
    USING (kind <> 'cancelled');

COMMIT;
