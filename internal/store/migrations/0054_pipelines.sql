-- +goose Up

ALTER TABLE workflows ADD COLUMN kind TEXT NOT NULL DEFAULT ''; -- the engine whose pipeline it launches; empty: none
ALTER TABLE workers ADD COLUMN launches TEXT NOT NULL DEFAULT ''; -- the engines that it has, divided by spaces
