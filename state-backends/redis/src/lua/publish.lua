-- Tells those who watch the queue that it was changed. Who may not say so has changed it all the same.
if revision ~= known_revision then
  redis.pcall('PUBLISH', QUEUE .. ':changes', '')
end

