package main

import (
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // draws PNG
	_ "gonum.org/v1/plot/vg/vgsvg" // draws SVG
)

// The colours of ours, of the floors, and of the rivals.
var (
	oursColour  = color.RGBA{0x1f, 0x77, 0xb4, 0xff}
	floorColour = color.RGBA{0x9e, 0x9e, 0x9e, 0xff}
	rivalColour = color.RGBA{0xd9, 0x8e, 0x3b, 0xff}
)

func colourOf(name string) color.Color {
	switch {
	case isRival(name):
		return rivalColour
	case slices.Contains([]string{holdfastName, noHandoverName, fairName, fairStraightName, multilockName}, name):
		return oursColour
	}
	return floorColour
}

// tile is the size of one drawing of a page.
const (
	tileWidth  = 14 * vg.Centimeter
	tileHeight = 9 * vg.Centimeter
	perRow     = 2
)

// drawing is one plot, perhaps with a legend to its right.
type drawing struct {
	*plot.Plot
	legend *plot.Legend
}

const legendWidth = 3 * vg.Centimeter

func (d drawing) drawOn(c draw.Canvas) {
	if d.legend != nil {
		d.legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth, 0, 0, -vg.Centimeter))
		c = draw.Crop(c, 0, -legendWidth, 0, 0)
	}
	d.Draw(c)
}

// drawPage writes drawings below each other, two in a row, as name.png and name.svg.
// Without any it does nothing.
func drawPage(dir, name string, drawings []drawing) error {
	if len(drawings) == 0 {
		return nil
	}
	rows := (len(drawings) + perRow - 1) / perRow
	width := tileWidth * vg.Length(min(perRow, len(drawings)))
	for _, format := range []string{"png", "svg"} {
		canvas, err := draw.NewFormattedCanvas(width, tileHeight*vg.Length(rows), format)
		if err != nil {
			return err
		}
		tiles := draw.Tiles{
			Rows: rows, Cols: min(perRow, len(drawings)), PadX: vg.Centimeter, PadY: vg.Centimeter,
			PadTop: vg.Centimeter / 2, PadBottom: vg.Centimeter / 2, PadLeft: vg.Centimeter / 2, PadRight: vg.Centimeter,
		}
		whole := draw.New(canvas)
		for i, p := range drawings {
			p.drawOn(tiles.At(whole, i%perRow, i/perRow))
		}
		if err := writeFile(filepath.Join(dir, name+"."+format), canvas); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, from io.WriterTo) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := from.WriteTo(f); err != nil {
		_ = f.Close() // the first error says more
		return err
	}
	return f.Close()
}

// bar is one bar with its name.
type bar struct {
	name  string
	value float64
}

// bars draws one bar below the other, each with its figure behind it.
func bars(title, unit string, all []bar) (drawing, error) {
	p := drawing{Plot: plot.New()}
	p.Title.Text, p.X.Label.Text = title, unit
	p.X.Min, p.X.Tick.Marker = 0, shortTicks{}
	var names []string
	var labels plotter.XYLabels
	longest := 0.0
	for i, b := range slices.Backward(all) { // the first on top
		at := len(all) - 1 - i
		one, err := plotter.NewBarChart(plotter.Values{b.value}, vg.Points(11))
		if err != nil {
			return p, err
		}
		one.Horizontal, one.XMin, one.Color, one.LineStyle.Width = true, float64(at), colourOf(b.name), 0
		p.Add(one)
		names = append(names, b.name)
		labels.XYs = append(labels.XYs, plotter.XY{X: b.value, Y: float64(at)})
		labels.Labels = append(labels.Labels, " "+number(b.value))
		longest = max(longest, b.value)
	}
	figures, err := plotter.NewLabels(labels)
	if err != nil {
		return p, err
	}
	for i := range figures.TextStyle {
		figures.TextStyle[i].YAlign = text.YCenter
		figures.TextStyle[i].Font.Size = font.Points(8)
	}
	p.Add(figures)
	p.NominalY(names...)
	p.X.Max = 1.2*longest + 1e-9 // room for the figures; never empty
	return p, nil
}

// line is one line with its name.
type line struct {
	name   string
	points plotter.XYs
}

// lines draws lines with a legend beside them.
func lines(title, x, y string, all []line) (drawing, error) {
	p := drawing{plot.New(), new(plot.NewLegend())}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.legend.Top, p.legend.Left = true, true
	p.legend.TextStyle.Font.Size = font.Points(8)
	for _, l := range all {
		drawn, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return p, err
		}
		drawn.Color, points.Color, points.Radius = lineColour(l.name), lineColour(l.name), vg.Points(2)
		if !isRival(l.name) {
			drawn.Width = vg.Points(2)
		} else {
			drawn.Dashes = []vg.Length{vg.Points(3), vg.Points(2)}
		}
		p.Add(drawn, points)
		p.legend.Add(l.name, drawn, points)
	}
	return p, nil
}

// lineColours tell lines apart, each subject's the same on all plots.
var lineColours = map[string]color.RGBA{
	holdfastName:       {0x0b, 0x4f, 0x8a, 0xff},
	noHandoverName:     {0x4a, 0x9b, 0xd9, 0xff},
	fairName:           {0x00, 0x80, 0x60, 0xff},
	fairStraightName:   {0x40, 0xb5, 0x90, 0xff},
	multilockName:      {0x0b, 0x4f, 0x8a, 0xff},
	setFloorName:       {0xc0, 0xc0, 0xc0, 0xff},
	rueidisName:        {0xd6, 0x27, 0x28, 0xff},
	redsyncName:        {0xff, 0x7f, 0x0e, 0xff},
	redsyncGoRedisName: {0xff, 0xbb, 0x78, 0xff},
	redislockName:      {0xb8, 0x86, 0x0b, 0xff},
	etcdName:           {0x94, 0x67, 0xbd, 0xff},
	zookeeperName:      {0x8c, 0x56, 0x4b, 0xff},
	redissonName:       {0xe3, 0x77, 0xc2, 0xff},
	redissonFairName:   {0xa0, 0x20, 0x80, 0xff},
	redissonSpinName:   {0x60, 0x60, 0x20, 0xff},
}

func lineColour(name string) color.Color {
	if c, ok := lineColours[name]; ok {
		return c
	}
	return floorColour
}

// shortTicks are the usual ticks with short figures.
type shortTicks struct{}

func (shortTicks) Ticks(low, high float64) []plot.Tick {
	return shorten(plot.DefaultTicks{}.Ticks(low, high))
}

// shortLogTicks are the same for a logarithmic axis.
type shortLogTicks struct{}

func (shortLogTicks) Ticks(low, high float64) []plot.Tick {
	inside := slices.DeleteFunc(plot.LogTicks{}.Ticks(low, high), func(t plot.Tick) bool {
		return t.Value < low || t.Value > high // these would take room
	})
	return shorten(inside)
}

func shorten(ticks []plot.Tick) []plot.Tick {
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = number(t.Value)
		}
	}
	return ticks
}
