-- What became of an operation's messages. Homes of one version have the column from 0001 already.
ALTER TABLE surety.operation ADD COLUMN IF NOT EXISTS results jsonb NOT NULL DEFAULT '[]';
