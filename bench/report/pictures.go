package report

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// shown are the workloads that have a picture.
var shown = []string{"uncontended/64", "hot/64 × 0s", "processes/8 × 8 × 0s", "fair/8 × 8"}

// pictures draws the medians of the rounds, of what was measured.
func (r *Results) pictures(dir string) error {
	for file, figure := range map[string]string{"main.png": speed, "waits.png": "lock p99 µs"} {
		var all []*plot.Plot
		for _, name := range shown {
			if p := r.find(name).bars(figure); p != nil {
				all = append(all, p)
			}
		}
		if err := page(filepath.Join(dir, file), all); err != nil {
			return err
		}
	}
	return nil
}

// bars draws a figure of all subjects, one bar below the other. It returns nil if none has it.
func (w Workload) bars(figure string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = w.Name, figure
	p.X.Min, p.X.Tick.Marker = 0, plot.TickerFunc(shortTicks)
	var names []string
	var labels plotter.Labels
	for _, s := range slices.Backward(w.Subjects) { // the first on top
		v := w.medianOf(s, figure)
		if math.IsNaN(v) {
			continue
		}
		at := float64(len(names))
		p.Add(&plotter.BarChart{Values: plotter.Values{v}, Horizontal: true, XMin: at, Width: vg.Points(11), Color: colourOf(s)})
		names = append(names, s)
		labels.XYs = append(labels.XYs, plotter.XY{X: v, Y: at})
		labels.Labels = append(labels.Labels, " "+number(v))
	}
	if len(names) == 0 {
		return nil
	}
	style := text.Style{Font: font.From(plotter.DefaultFont, 8), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	labels.TextStyle = slices.Repeat([]text.Style{style}, len(names))
	p.Add(&labels)
	p.NominalY(names...)
	p.X.Max = 1.2*p.X.Max + 1e-9 // room for the labels, and never 0
	return p
}

func colourOf(subject string) color.Color {
	switch {
	case IsRival(subject):
		return color.RGBA{0xd9, 0x8e, 0x3b, 0xff}
	case slices.Contains([]string{"floor", "floor of SET", "ring", queue}, subject):
		return color.RGBA{0x9e, 0x9e, 0x9e, 0xff}
	}
	return color.RGBA{0x1f, 0x77, 0xb4, 0xff}
}

func shortTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = number(t.Value)
		}
	}
	return ticks
}

// page draws plots in rows of two.
func page(file string, all []*plot.Plot) error {
	if len(all) == 0 {
		return nil
	}
	if len(all)%2 == 1 {
		all = append(all, nil)
	}
	rows := slices.Collect(slices.Chunk(all, 2))
	canvas := vgimg.New(28*vg.Centimeter, vg.Length(len(rows))*9*vg.Centimeter)
	const pad = vg.Centimeter / 2
	tiles := draw.Tiles{
		Rows: len(rows), Cols: 2, PadX: 2 * pad, PadY: 2 * pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: 2 * pad,
	}
	for i, row := range plot.Align(rows, tiles, draw.New(canvas)) {
		for j, c := range row {
			if p := rows[i][j]; p != nil {
				p.Draw(c)
			}
		}
	}
	var png bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&png); err != nil {
		return err
	}
	return os.WriteFile(file, png.Bytes(), 0o644)
}
