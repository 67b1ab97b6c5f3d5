package main
import _ "github.com/chromedp/chromedp"
func main() {}
