CREATE TABLE people(name TEXT, born INTEGER, note TEXT);
INSERT INTO people VALUES ('ada', 1815, 'engine'), ('alan', 1912, NULL), ('grace', 1906, 'it''s a moth');
CREATE INDEX by_birth ON people(born);
