// For `tsc --checkJs` over the page's JavaScript: the DOM's types are more general than what the page knows of its own
// elements (an event of a field comes from a field). Only such properties belong here.
interface EventTarget {
  value?: any;
  checked?: any;
  title?: string;
  matches?: any;
}
interface Element {
  dataset?: any;
  hidden?: any;
  onclick?: any;
  value?: any;
}
interface Window {
  [name: string]: any;
}
