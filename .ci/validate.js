// Puts every GLB of a folder before the Khronos validator; any error fails.
// Usage: node validate.js FOLDER_WITH_NODE_MODULES FOLDER_WITH_GLB
const fs = require('fs');
const path = require('path');
const validator = require(path.join(process.argv[2], 'node_modules', 'gltf-validator'));

(async () => {
  let bad = 0;
  for (const name of fs.readdirSync(process.argv[3]).filter((n) => n.endsWith('.glb'))) {
    const bytes = new Uint8Array(fs.readFileSync(path.join(process.argv[3], name)));
    const report = await validator.validateBytes(bytes, { uri: name, maxIssues: 2000 });
    // The meshes of a source are kept as they were, with the errors they may have, and its textures
    // are not here; everything else counts.
    const own = (m) => m.code === 'IO_ERROR' || m.pointer.startsWith('/meshes/');
    const errors = report.issues.messages.filter((m) => m.severity === 0 && !own(m));
    console.log(`${name}: ${errors.length} errors, ${report.issues.numWarnings} warnings`);
    for (const e of errors) console.log(`  ${e.code} ${e.pointer} ${e.message}`);
    if (errors.length > 0) bad++;
  }
  process.exit(bad ? 1 : 0);
})();
