UPDATE runs SET needs = '[{"kind":"image","ref":"alpine:3"}]', preparing_by = 'w', preparing = 'image' WHERE id = 'r';
