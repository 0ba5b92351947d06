-- Makes a man page of a page of docs/, for pandoc: headings as man pages have them, tables of terms and prose as lists of
-- terms, no pictures, and links as their text.

local kLongestShortCell = 30  -- letters; a table of cells up to this stays a table
local kPage, kGap = 70, 3     -- letters: a line of the page as pandoc counts, and what is between columns

local function text_of(cell)
  return pandoc.utils.stringify(cell.contents)
end

local function upper(inlines)
  return inlines:walk({ Str = function(word) return pandoc.Str(pandoc.text.upper(word.text)) end })
end

-- The title becomes DESCRIPTION; NAME and SYNOPSIS stand in front of it.
local function heading(header)
  if header.level == 1 then return pandoc.Header(1, { pandoc.Str("DESCRIPTION") }) end
  header.level = header.level - 1
  if header.level == 1 then header.content = upper(header.content) end
  return header
end

-- The letters of the longest cell of a column, and of its longest word.
local function measure(rows, column)
  local cell, word = 0, 0
  for _, row in ipairs(rows) do
    local text = text_of(row.cells[column])
    cell = math.max(cell, #text)
    for letters in text:gmatch("%S+") do word = math.max(word, #letters) end
  end
  return cell, word
end

local function is_list_of_terms(tab)
  local columns = #tab.colspecs
  local rows = tab.bodies[1].body
  local last = measure(rows, columns)
  return (columns == 2 or columns == 3) and last > kLongestShortCell and last > measure(rows, columns - 1)
end

-- A column in the middle goes in front of the last one, in brackets.
local function definition(cells)
  local inlines = pandoc.utils.blocks_to_inlines(cells[#cells].contents)
  local between = #cells == 3 and text_of(cells[2]) or ""
  if between ~= "" then inlines = pandoc.Inlines({ pandoc.Str("(" .. between .. ")"), pandoc.Space() }) .. inlines end
  return pandoc.Para(inlines)
end

-- A row without a first cell goes on with the one above.
local function terms(body)
  local items = {}
  for _, row in ipairs(body) do
    local term = pandoc.utils.blocks_to_inlines(row.cells[1].contents)
    if #term == 0 and #items > 0 then
      table.insert(items[#items][2][1], definition(row.cells))
    else
      table.insert(items, { term, { { definition(row.cells) } } })
    end
  end
  return pandoc.DefinitionList(items)
end

-- Each column gets room for its longest word, and of what is left the more the longer its cells are.
local function set_widths(tab)
  local rows = { tab.head.rows[1], table.unpack(tab.bodies[1].body) }
  local words, rests, all_words, all_rests = {}, {}, 0, 0
  for i = 1, #tab.colspecs do
    local cell, word = measure(rows, i)
    words[i], rests[i] = word, math.min(cell - word, kLongestShortCell)
    all_words, all_rests = all_words + word, all_rests + rests[i]
  end
  local left = math.max(0, kPage - kGap * (#words - 1) - all_words)
  for i, spec in ipairs(tab.colspecs) do spec[2] = (words[i] + left * rests[i] / math.max(1, all_rests)) / kPage end
  tab.colspecs = tab.colspecs
  return tab
end

local function list_or_table(tab)
  if is_list_of_terms(tab) then return terms(tab.bodies[1].body) end
  return set_widths(tab)
end

-- Ragged on the right and without hyphens: names of keys and options stay whole.
local function begin_page(document)
  document.blocks:insert(1, pandoc.RawBlock("man", ".ad l\n.nh"))
  return document
end

return {
  { Table = list_or_table, Header = heading },
  {
    Image = function() return {} end,
    Link = function(link) return link.content end,
    Code = function(code) return pandoc.Strong({ pandoc.Str(code.text) }) end,
    Pandoc = begin_page,
  },
}
