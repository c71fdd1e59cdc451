UPDATE storage SET definitions = 1;
UPDATE answers SET team_id = 't';
UPDATE runs SET inputs = '{"reads":["teams/t/uploads/1/x","https://host.example/y"]}';
