-- answered: notes the `answer` for hold `i` among the `answers` of a renewal, and counts those `renewed`. An error becomes its text.
if answer == 1 then
  renewed = renewed + 1
elseif type(answer) == 'table' then
  answer = answer.err
end
answers[i] = answer
